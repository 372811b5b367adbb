"""A page that was left is not drawn any more.

A page's timer may fire in the browser while the server is already at work on another page, to which the script itself
went (`st.switch_page`; a link in the browser stops the timers first). Streamlit 1.67 keeps such a request until the
new page is done, finds nothing of the old page to draw, and yet tells the browser that the old page is the one that
ran: the browser then takes away all of the new one, which stays empty until it is loaded again.
"""

from functools import wraps

from streamlit.runtime.scriptrunner import RerunData, ScriptRunner, get_script_run_ctx


def pass_over_pages_left() -> None:
    """From here on, requests for parts of a page that is not the session's any more are passed over.

    Streamlit has no place for this, so it goes around what runs a request. To be called once, before the first session.
    """
    run = ScriptRunner._run_script

    @wraps(run)
    def run_unless_left(self: ScriptRunner, rerun_data: RerunData) -> None:
        if not is_of_page_left(rerun_data):
            run(self, rerun_data)

    ScriptRunner._run_script = run_unless_left  # type: ignore[method-assign]


def is_of_page_left(asked: RerunData) -> bool:
    """Whether a request is for parts of another page than the one that this session ran last."""
    session = get_script_run_ctx()
    ran_last = session.page_script_hash if session else ""
    return bool(asked.fragment_id_queue and ran_last and asked.page_script_hash != ran_last)
