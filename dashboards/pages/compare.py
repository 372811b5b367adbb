"""Compare: is the second arm better than the first?"""

import streamlit as st

from dashboards.charts.arm_cells import SELECTION, arm_cells
from dashboards.charts.arm_shifts import arm_shifts
from dashboards.links import CELL_PAGE, cell_parameters
from dashboards.parts.address import heed_choice, heeded
from dashboards.parts.charted import show_chart
from dashboards.parts.controls import CONTROL_PX, choose_of, choose_one, control_bar
from dashboards.parts.notices import say_freshness, say_problem
from dashboards.parts.time_range import choose_range, hold_button
from dashboards.questions.arms import arms_stored, comparable_arms, usual_arms, usual_rows
from dashboards.questions.ranges import ALL_TIME, TimeRange, time_parameters
from dashboards.reading.answers import answer
from dashboards.reading.outcomes import COMPARISON_FRESH_S, comparison
from dashboards.reading.store import clickhouse_url
from dashboards.words.comparisons import comparison_sentence, comparison_table
from dashboards.words.refusals import refusal_words
from dashboards.words.texts import escaped
from queries.compare.cells import LABELS
from queries.compare.comparison import Comparison, Verdict
from queries.compare.markdown import markdown
from queries.compare.wording import METRIC_WORDS, how_computed, remarks

# In words, which stand in the URL too.
METRICS = {words: metric for metric, words in METRIC_WORDS.items()}
ROWS = {label.replace("_", " "): label for label in LABELS}


def choose_rows(usual: tuple[str, ...]) -> tuple[str, ...]:
    """What makes a row of the table; `usual` to begin with, and where nothing is chosen."""
    heed_choice("by", ROWS)
    chosen = st.pills(
        "One row for each",
        list(ROWS),
        selection_mode="multi",
        default=usual,
        key="by",
        bind="query-params",
        on_change=heeded,
        args=("by",),
    )
    return tuple(ROWS[words] for words in chosen) or usual


def verdict(compared: Comparison) -> None:
    """The verdict on all of it."""
    told = comparison_sentence(compared)
    if compared.overall.verdict is Verdict.BETTER:
        st.success(told, icon=":material/thumb_up:")
    elif compared.overall.verdict is Verdict.WORSE:
        st.warning(told, icon=":material/thumb_down:")
    else:
        st.info(told, icon=":material/balance:")


def cells(compared: Comparison, rests_on: tuple[object, ...]) -> None:
    """Every cell as a dot; a click opens it."""
    st.subheader("The cells themselves", anchor=False)
    event = show_chart(
        "arm_cells",
        rests_on,
        lambda: arm_cells(compared),
        on_select="rerun",
        alt="Each cell of both arms as a dot, by group",
    )
    st.caption(
        "Two cells joined by a line are a pair: neighbours in the benchmark's order. Click a dot to open its cell."
    )
    for cell in event.selection.get(SELECTION, []):
        st.switch_page(CELL_PAGE, query_params=cell_parameters(cell["service_instance_id"], cell["cell"]))


def shifts(compared: Comparison, rests_on: tuple[object, ...]) -> None:
    """By how much, and how sure that is."""
    st.subheader("By how much they differ", anchor=False)
    show_chart("arm_shifts", rests_on, lambda: arm_shifts(compared), alt="Shift of each group with its intervals")
    st.caption(
        "Diamond and bar: the shift and its 95 % interval. Thin line: the interval of the mean."
        " Grey band: what one arm shows against itself."
    )


def draw(compared: Comparison, rests_on: tuple[object, ...]) -> None:
    """The whole comparison."""
    verdict(compared)
    st.markdown(comparison_table(compared), unsafe_allow_html=True)
    for remark in remarks(compared):
        st.markdown(f"- {escaped(remark)}")
    shifts(compared, rests_on)
    cells(compared, rests_on)
    st.download_button(
        "Table as Markdown", markdown(compared), "comparison.md", "text/markdown", icon=":material/download:"
    )
    st.caption(escaped(how_computed(compared)))


@st.fragment(run_every=COMPARISON_FRESH_S)
def live(arms: tuple[str, str], by: tuple[str, ...], metric: str, time_range: TimeRange) -> None:
    """Everything that changes while a benchmark runs."""
    time = time_range.since or None, time_range.until or None
    outcome = comparison(clickhouse_url(), arms, by, metric, time)
    say_problem([outcome])
    if outcome.value is not None:
        draw(outcome.value, (arms, by, metric, time, outcome.at))
        say_freshness(outcome, None, live=not time_range.is_held)
    elif outcome.refusal:
        st.info(f"Nothing to compare: {refusal_words(outcome.refusal)}.", icon=":material/inbox:")
        st.markdown(
            "An engine takes part in a comparison by `cell.arm` on its executions, such as `before` or `after`, and"
            " `cell.position` for the order; `docs/contract.md` has both."
        )


st.title("Is the second arm better than the first?", anchor=False)
bar = control_bar()
with bar:
    chosen_range = choose_range(ALL_TIME, width=CONTROL_PX)
# Asked outside of the bar: what is said while one waits would push its controls aside.
stored_engines = answer("engines", **time_parameters(chosen_range)).rows
stored_arms = arms_stored(stored_engines)
with bar:
    first_arm, second_arm = comparable_arms(stored_engines) or usual_arms(stored_arms)
    chosen_first = choose_one("Arm compared with", "before", stored_arms, first_arm)
    chosen_second = choose_one("Arm judged", "after", stored_arms, second_arm)
    chosen_metric = METRICS[choose_of("Compared by", "metric", list(METRICS))]
    hold_button(chosen_range, ALL_TIME)
chosen_rows = choose_rows(usual_rows(stored_engines, (chosen_first, chosen_second)))
live((chosen_first, chosen_second), chosen_rows, chosen_metric, chosen_range)
