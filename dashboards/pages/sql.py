"""SQL: what does the record say?"""

from functools import partial
from urllib.parse import urlencode

import pandas as pd
import streamlit as st

from dashboards.charts.answer_chart import MARKS, answer_chart
from dashboards.parts.address import heed_choice, heeded
from dashboards.parts.notices import say_freshness, viewer_zone, zone_name
from dashboards.questions.columns import default_across, default_up, figures, labels, times
from dashboards.reading.answers import Answer
from dashboards.reading.console import PARAMETER_PREFIX, Question, as_file, by_topic, forget, told
from dashboards.words.markdown import way
from dashboards.words.texts import escaped, with_code
from engine_hooks.commands.counting import counted
from queries.ad_hoc import FILE_ROWS_MAX, ROWS_MAX
from queries.catalogue import Parameter, Query, load
from queries.runner import RawFormat

NAMED, WRITTEN = "a named query", "SQL of my own"
TABLE, CHART = "table", "chart"
FIELD_PX, LONG_FIELD_PX = 168, 216
"""Of parameters; those with a long name take more, or it would break within a word."""
LONG_LETTERS = 20
TOPICS = {"gpu": "GPU"}
FILES: dict[str, tuple[RawFormat, str, str]] = {
    "CSV": ("CSVWithNames", "csv", "text/csv"),
    "Parquet": ("Parquet", "parquet", "application/vnd.apache.parquet"),
}


def named() -> Question:
    """A query of the catalogue, with its parameters."""
    catalogue = load()
    heed_choice("query", catalogue)
    name = st.selectbox(
        "Query",
        list(catalogue),
        index=None,
        placeholder="choose a question",
        key="query",
        bind="query-params",
        on_change=heeded,
        args=("query",),
    )
    if not name:
        contents()
        return Question()
    query = catalogue[name]
    st.markdown(f"**{escaped(query.question)}**")
    values = parameters(query)
    head(query)
    return Question(name, values)


def contents() -> None:
    """The catalogue: every question, by topic, each a link."""
    for topic, queries in by_topic().items():
        st.subheader(TOPICS.get(topic, topic.capitalize()), anchor=False)
        lines = (
            f"- {way(f'`{one.name}`', 'sql?' + urlencode({'query': one.name}))} {escaped(one.question)}"
            for one in queries
        )
        st.markdown("\n".join(lines), unsafe_allow_html=True)


def parameters(query: Query) -> tuple[tuple[str, str], ...]:
    """A field for each parameter; those left empty have their defaults."""
    with st.container(horizontal=True, vertical_alignment="bottom"):
        typed = [(parameter.name, field(parameter)) for parameter in query.parameters]
    return tuple((name, value) for name, value in typed if value)


def field(parameter: Parameter) -> str:
    """One parameter's field, bound to the URL."""
    return st.text_input(
        parameter.name,
        placeholder=parameter.default or "any",
        help=f"{escaped(parameter.meaning)} ({escaped(parameter.type)})",
        key=PARAMETER_PREFIX + parameter.name,
        bind="query-params",
        width=FIELD_PX if len(parameter.name) < LONG_LETTERS else LONG_FIELD_PX,
    ).strip()


def head(query: Query) -> None:
    """What the columns mean, and the SQL itself."""
    with st.expander("Columns and SQL", icon=":material/article:"):
        lines = (f"| `{one.name}` | {escaped(one.unit)} | {escaped(one.meaning)} |" for one in query.columns)
        st.markdown("\n".join(["| Column | Unit | Meaning |", "| :-- | :-- | :-- |", *lines]))
        st.code(query.sql, language="sql")
        st.code(query.example, language="bash")


def written() -> Question:
    """SQL that somebody writes here."""
    sql = st.text_area(
        "Statement",
        placeholder="SELECT graph_name, count() FROM graph_executions GROUP BY graph_name",
        help="One statement of ClickHouse's SQL that reads. The table is graph\\_executions; Ctrl+Enter asks.",
        height=140,
        key="sql",
        bind="query-params",
    )
    return Question(sql=sql)


def ask_button(question: Question) -> None:
    """Asks, or asks again."""
    if not st.button("Ask", icon=":material/play_arrow:", key="ask"):
        return
    if question:
        forget(question)
    else:
        st.warning("There is nothing to ask yet: write a statement above.", icon=":material/edit:")


def result(question: Question, answer: Answer) -> None:
    """The answer as table or chart, and as a file."""
    if answer.rows.empty:
        st.info("The answer has no rows.", icon=":material/inbox:")
        return
    units = {one.name: one.unit for one in load()[question.query].columns} if question.query else {}
    shown = one_of("Show as", [TABLE, CHART], "show")
    if shown == CHART:
        chart(answer.rows, units)
    else:
        table(question, answer.rows, units)
    say_size(question, answer)
    downloads(question)


def say_size(question: Question, answer: Answer) -> None:
    """How much of the answer is shown, of when, and in which zone."""
    cut = not question.query and len(answer.rows) == ROWS_MAX
    more = f", the first of more; a file holds about {FILE_ROWS_MAX:,}" if cut else ""
    st.caption(f"{counted(len(answer.rows), 'row')}{more}. Times are in {zone_name()}; in files they are in UTC.")
    say_freshness(answer, None, live=False)


def table(question: Question, rows: pd.DataFrame, units: dict[str, str]) -> None:
    """The rows, columns with their units and meanings."""
    meanings = {one.name: one.meaning for one in load()[question.query].columns} if question.query else {}
    config = {
        name: st.column_config.Column(f"{name} [{unit}]" if unit and unit != "time" else name, help=meanings.get(name))
        for name, unit in units.items()
    }
    zone = viewer_zone()
    local = rows.assign(**{name: rows[name].dt.tz_convert(zone) for name in times(rows)})
    st.dataframe(local, column_config=config, hide_index=True, key="rows")


def chart(rows: pd.DataFrame, units: dict[str, str]) -> None:
    """The rows drawn: two columns of the viewer's choice, told apart by a third."""
    every = [*times(rows), *labels(rows), *figures(rows)]
    if not every or not figures(rows):
        st.info("There is no column of figures to draw.", icon=":material/inbox:")
        return
    bar = st.columns(4)
    with bar[0]:
        across = select("Across", every, default_across(rows), "x")
    with bar[1]:
        up = select("Up", figures(rows), default_up(rows, across, units) or figures(rows)[0], "y")
    with bar[2]:
        by = st.selectbox(
            "Told apart by", labels(rows), index=None, placeholder="nothing", key="by", bind="query-params"
        )
    with bar[3]:
        heed_choice("mark", MARKS)
        mark = st.selectbox("Drawn as", MARKS, key="mark", bind="query-params", on_change=heeded, args=("mark",))
    drawn = answer_chart(rows, across, up, by or "", mark, units=units)
    st.altair_chart(drawn, key="answer_chart", alt=f"{up} over {across}")


def select(label: str, options: list[str], default: str, key: str) -> str:
    """One of an answer's columns, bound to the URL; another answer has others, so what it has not is passed over."""
    return st.selectbox(label, options, index=options.index(default), key=key, bind="query-params")


def one_of(label: str, options: list[str], key: str) -> str | None:
    """One of a few, all of them shown, the first where nothing is asked; bound to the URL."""
    heed_choice(key, options)
    return st.segmented_control(
        label, options, default=options[0], key=key, bind="query-params", on_change=heeded, args=(key,)
    )


def downloads(question: Question) -> None:
    """The answer as files, fetched when asked for: exact, as ClickHouse writes them."""
    with st.container(horizontal=True):
        for label, (format, suffix, mime) in FILES.items():
            st.download_button(
                f"Download {label}",
                partial(as_file, question, format),
                file_name=f"{question.query or 'answer'}.{suffix}",
                mime=mime,
                on_click="ignore",
                icon=":material/download:",
                key=f"download_{suffix}",
            )


st.title("What does the record say?", anchor=False)
kind = one_of("Ask", [NAMED, WRITTEN], "with")
asked = written() if kind == WRITTEN else named()
if asked or kind == WRITTEN:
    ask_button(asked)
if asked:
    got = told(asked)
    if got.problem:
        st.error(with_code(got.problem), icon=":material/block:")
    if got.known:
        result(asked, got)
    if not got.problem:
        st.caption("The address of this page holds the question: whoever opens it sees the same.")
