"""The dashboards' entry: one page a question. Run by `tachograph dashboard`."""

import streamlit as st

st.set_page_config(page_title="Tachograph", page_icon=":material/speed:", layout="wide")
st.navigation(
    [
        st.Page("pages/fleet.py", title="Fleet", icon=":material/grid_on:", default=True),
        st.Page("pages/cell.py", title="Cell", icon=":material/timeline:", url_path="cell"),
    ],
    position="top",
).run()
