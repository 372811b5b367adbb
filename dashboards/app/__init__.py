"""The script that Streamlit runs.

It lies in a folder of its own: beside a folder called `pages`, Streamlit would run the pages by itself
until the first `st.navigation`, so that a link opened just after a start would show a page without the app.
"""
