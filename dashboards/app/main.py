"""The dashboards' entry: one page a question. Run by `tachograph dashboard`."""

import streamlit as st

from dashboards.app.login import admit, offer_logout
from dashboards.links import (
    ALERTS_PAGE,
    CELL_PAGE,
    COMPARE_PAGE,
    FLEET_PAGE,
    GRAPHS_PAGE,
    HEALTH_PAGE,
    SQL_PAGE,
    WHAT_IF_PAGE,
)
from dashboards.parts.address import begin_page, heed_names

# Drawn here, so that no browser has to fetch it from anywhere.
ICON = (
    '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 32 32"><circle cx="16" cy="16" r="15" fill="#2f7fc1"/>'
    '<path d="M16 16 25 9" stroke="#fff" stroke-width="3" stroke-linecap="round"/>'
    '<path d="M6 20a11 11 0 1 1 20 0" fill="none" stroke="#fff" stroke-width="2.5"/>'
    '<circle cx="16" cy="16" r="2.5" fill="#d9480f"/></svg>'
)
# Streamlit leaves 96 px above the first line, which on a page to keep open is a row of the fleet.
# It also fades what is about to be refreshed: a page that refreshes every two seconds would flicker, and says its
# age in words. What is being waited for is said on top of what stands there, which would otherwise show through.
# (A theme option would do for the heading, but any of them takes the dark theme away.)
# What a page says of a control, as of a value that the address asks for in vain, would push the next one aside: it stands
# below all of them.
# A table that scrolls sideways fades where it goes on: nothing else on a telephone says so. Browsers that know no
# animation by scrolling show it as it is. (Streamlit leaves out a style that has anything like a tag in it.)
DENSER = """<style>
.stMainBlockContainer { padding-top: 4rem; padding-bottom: 2rem; }
.stMainBlockContainer [data-stale="true"] { opacity: 1 !important; }
.stMainBlockContainer .stCacheSpinner { position: relative; z-index: 1; padding-right: 1rem; backdrop-filter: blur(1rem); }
.stMainBlockContainer h1 { font-size: 1.6rem; }
.stMainBlockContainer [data-testid="stCaptionContainer"] { color: inherit; opacity: 0.75; }
.stMainBlockContainer table { display: block; overflow-x: auto; }
.stMainBlockContainer table td { vertical-align: top; }
@property --left-fade { syntax: "\\3clength\\3e"; inherits: false; initial-value: 0px; }
@property --right-fade { syntax: "\\3clength\\3e"; inherits: false; initial-value: 0px; }
@keyframes fade-left { from { --left-fade: 0px; } 12%, to { --left-fade: 48px; } }
@keyframes fade-right { from, 88% { --right-fade: 48px; } to { --right-fade: 0px; } }
@supports (animation-timeline: scroll(self inline)) {
  .stMainBlockContainer table {
    animation: fade-left linear both, fade-right linear both;
    animation-timeline: scroll(self inline);
    mask-image: linear-gradient(to right, transparent, black var(--left-fade), black calc(100% - var(--right-fade)), transparent);
  }
}
.stMainBlockContainer .stHorizontalBlock > .stElementContainer:has(> .stAlert) { order: 1; flex: 1 1 100%; }
.stMainBlockContainer h3 { font-size: 1.2rem; }
.stMainBlockContainer [data-testid="stPageLink"] p { white-space: normal; text-align: left; }
@media (max-width: 640px) { .stMainBlockContainer table td { white-space: nowrap; } }
</style>"""

st.set_page_config(page_title="Tachograph", page_icon=ICON, layout="wide")
st.html(DENSER)
admit()
page = st.navigation(
    [
        st.Page(FLEET_PAGE, title="Fleet", icon=":material/grid_on:", default=True),
        st.Page(CELL_PAGE, title="Cell", icon=":material/timeline:", url_path="cell"),
        st.Page(GRAPHS_PAGE, title="Graphs", icon=":material/show_chart:", url_path="graphs"),
        st.Page(COMPARE_PAGE, title="Compare", icon=":material/compare_arrows:", url_path="compare"),
        st.Page(WHAT_IF_PAGE, title="What if", icon=":material/alt_route:", url_path="what_if"),
        st.Page(ALERTS_PAGE, title="Alerts", icon=":material/notifications:", url_path="alerts"),
        st.Page(SQL_PAGE, title="SQL", icon=":material/terminal:", url_path="sql"),
        st.Page(HEALTH_PAGE, title="Health", icon=":material/monitor_heart:", url_path="health"),
    ],
    position="top",
)
begin_page(page.url_path)
heed_names(page.url_path)
page.run()
offer_logout()
