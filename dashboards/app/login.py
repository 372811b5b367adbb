"""Logging in by OpenID Connect, before any page runs."""

import os
from typing import Any

import streamlit as st

from dashboards.access import OIDC_FILE, admitted_emails, is_admitted
from dashboards.words.texts import escaped


def admit() -> None:
    """Let go on whom the provider names and our list admits; everybody else may log in, or is told that they may not."""
    if not os.environ.get(OIDC_FILE):
        return
    user = visitor()
    if not user.get("is_logged_in"):
        st.title("Tachograph", anchor=False)
        st.markdown("These dashboards are for people who are known here.")
        st.button("Log in", on_click=st.login, icon=":material/login:", type="primary")
        st.stop()
    if not is_admitted(user, admitted_emails(st.secrets)):
        st.title("Tachograph", anchor=False)
        who = escaped(user.get("email") or "This account")
        st.error(f"{who} may not look at these dashboards.", icon=":material/block:")
        st.button("Log in as somebody else", on_click=st.logout, icon=":material/logout:")
        st.stop()


def offer_logout() -> None:
    """A way out, for whoever logged in."""
    if os.environ.get(OIDC_FILE):
        who = escaped(visitor().get("email") or "")
        st.button("Log out", help=who, on_click=st.logout, icon=":material/logout:")


def visitor() -> dict[str, Any]:
    """What the provider says of whoever looks; nothing before they log in."""
    return dict(st.user)
