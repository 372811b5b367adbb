"""Live Streamlit pages over the queries."""
