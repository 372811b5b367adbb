"""The dashboards: what `tachograph dashboard` has Streamlit serve."""

from pathlib import Path

import streamlit as st
from starlette.middleware import Middleware

from dashboards.app.preloading import Preloading

app = st.App(Path(__file__).with_name("main.py"), middleware=[Middleware(Preloading)])
