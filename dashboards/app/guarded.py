"""The dashboards behind their password: what `tachograph dashboard` has Streamlit serve where one is set."""

import os
from pathlib import Path

import streamlit as st
from starlette.middleware import Middleware

from dashboards.access import PASSWORD, PASSWORD_FILE, passwords_of
from dashboards.app.made_ready import made_ready
from dashboards.app.pages_left import pass_over_pages_left
from dashboards.app.password_gate import PasswordGate
from dashboards.app.preloading import Preloading
from dashboards.errors import DashboardAccessError

file = os.environ.get(PASSWORD_FILE)
passwords = passwords_of(os.environ.get(PASSWORD, ""), Path(file) if file else None)
if passwords is None:
    raise DashboardAccessError(f"{PASSWORD} is not set")
pass_over_pages_left()
middleware = [Middleware(PasswordGate, passwords=passwords), Middleware(Preloading)]
app = st.App(Path(__file__).with_name("main.py"), lifespan=made_ready, middleware=middleware)
