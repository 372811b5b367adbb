"""The dashboards: what `tachograph dashboard` has Streamlit serve."""

from pathlib import Path

import streamlit as st
from starlette.middleware import Middleware

from dashboards.app.made_ready import made_ready
from dashboards.app.pages_left import pass_over_pages_left
from dashboards.app.preloading import Preloading

pass_over_pages_left()
app = st.App(Path(__file__).with_name("main.py"), lifespan=made_ready, middleware=[Middleware(Preloading)])
