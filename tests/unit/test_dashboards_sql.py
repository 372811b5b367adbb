"""The SQL page in every state, on the real engine, without a browser; and its chart."""

from io import BytesIO
from typing import Any

import pandas as pd
import pyarrow as pa
import pytest

from dashboards.charts.answer_chart import GROUPS_MAX, answer_chart
from dashboards.links import SQL_PAGE
from dashboards.questions.columns import default_across, default_up, figures, labels
from dashboards.reading import console
from dashboards.reading.console import Question
from dashboards.reading.store import URL_VARIABLE
from queries.catalogue import load
from queries.errors import RefusedError
from tests.fixtures.pages import NOWHERE, away, checked, page_opened, pressed, said

WRITTEN = {"with": "SQL of my own"}
COUNTING = "SELECT cell_id, count() AS executions, max(started_at) AS newest FROM graph_executions GROUP BY cell_id"

CELLS = ("r008", "r014")


class TestPage:
    def test_without_a_question_it_lists_the_catalogue(self, monkeypatch: pytest.MonkeyPatch) -> None:
        text = said(page_opened(SQL_PAGE, NOWHERE, monkeypatch))
        assert all(f"`{name}`" in text for name in load())
        assert load()["stuck_plain"].question in text

    def test_a_link_to_a_named_query_with_its_parameters(
        self, labelled_url: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        app = page_opened(SQL_PAGE, labelled_url, monkeypatch, query="cells", p_host="gpu-node-024", p_last_s="0")
        assert app.text_input(key="p_host").value == "gpu-node-024"
        assert list(app.dataframe[0].value.cell) == ["bench-r014"]
        assert "1 row." in said(app)
        assert load()["cells"].question in said(app)

    def test_a_parameter_that_does_not_fit_is_one_line(
        self, labelled_url: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        app = page_opened(SQL_PAGE, labelled_url, monkeypatch, query="cells", p_from="yesterday")
        assert "parameter from is 'yesterday'" in app.error[0].value.replace("\\", "")
        assert not app.dataframe

    def test_nothing_is_asked_without_a_statement(self, labelled_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
        app = page_opened(SQL_PAGE, labelled_url, monkeypatch, **WRITTEN)
        assert "nothing to ask" not in said(app)
        assert "There is nothing to ask yet" in said(pressed(app, "Ask"))

    def test_free_sql(self, labelled_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
        app = page_opened(SQL_PAGE, labelled_url, monkeypatch, sql=COUNTING, **WRITTEN)
        assert set(app.dataframe[0].value.cell_id) == {"bench-r008", "bench-r014"}
        assert len(app.get("download_button")) == 2

    @pytest.mark.parametrize(
        "statement", ["DROP TABLE graph_executions", "INSERT INTO replays VALUES (1)", "SELECT * FROM url('http://x')"]
    )
    def test_a_write_is_refused_in_clickhouses_one_line(
        self, labelled_url: str, monkeypatch: pytest.MonkeyPatch, statement: str
    ) -> None:
        app = page_opened(SQL_PAGE, labelled_url, monkeypatch, sql=statement, **WRITTEN)
        (error,) = app.error
        assert "ClickHouse at" in error.value.replace("\\", "")
        assert error.value.count("Code:") + error.value.count("Code\\:") == 1
        assert "exception, code" not in error.value
        assert "\n" not in error.value
        assert not app.dataframe

    def test_as_a_chart(self, labelled_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
        app = page_opened(SQL_PAGE, labelled_url, monkeypatch, sql=COUNTING, show="chart", by="cell_id", **WRITTEN)
        assert len(app.get("vega_lite_chart")) == 1
        assert app.selectbox(key="x").value == "newest"
        assert app.selectbox(key="y").value == "executions"
        assert app.selectbox(key="by").value == "cell_id"

    def test_no_rows(self, labelled_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
        app = page_opened(SQL_PAGE, labelled_url, monkeypatch, query="cells", p_host="nobody")
        assert "The answer has no rows" in said(app)

    def test_clickhouse_was_never_there(self, monkeypatch: pytest.MonkeyPatch) -> None:
        app = page_opened(SQL_PAGE, NOWHERE, monkeypatch, query="cells")
        assert "no ClickHouse answers" in app.error[0].value

    def test_clickhouse_went_away(self, labelled_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
        app = page_opened(SQL_PAGE, labelled_url, monkeypatch, query="cells", p_last_s="0")
        monkeypatch.setattr(console, "run", away)
        checked(app.button(key="ask").click().run())
        assert "no ClickHouse answers" in app.error[0].value
        assert len(app.dataframe[0].value) == 2


class TestConsole:
    def test_an_answer_stands_until_it_is_asked_for_anew(
        self, labelled_url: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setenv(URL_VARIABLE, labelled_url)
        question = Question(sql=COUNTING)
        first = console.told(question)
        assert console.told(question).at == first.at
        console.forget(question)
        assert console.told(question).at != first.at

    def test_instants_are_utc_and_repeated_names_told_apart(self, labelled_url: str) -> None:
        rows = console.written_rows(labelled_url, "SELECT now() AS a, toNullable(now64(3)) AS b, [now()] AS c, 1, 1")
        assert list(rows.columns) == ["a", "b", "c", "1", "1 (2)"]
        assert [str(rows[name].dt.tz) for name in ("a", "b")] == ["UTC", "UTC"]

    def test_no_number_is_not_nothing(self, labelled_url: str) -> None:
        rows = console.written_rows(labelled_url, "SELECT toNullable(nan) AS a, nan AS b UNION ALL SELECT NULL, 1")
        shown = pa.Table.from_pandas(rows).to_pydict()
        assert sorted(map(str, shown["a"])) == ["None", "nan"]
        assert sorted(map(str, shown["b"])) == ["1.0", "nan"]
        assert figures(rows) == ["a", "b"]
        assert answer_chart(rows, "b", "a").to_dict()["datasets"]

    @pytest.mark.parametrize("end", ["FORMAT PrettyCompact", "format CSV;", "\nFORMAT\tJSON\n;\n"])
    def test_a_statement_may_name_its_format(
        self, labelled_url: str, monkeypatch: pytest.MonkeyPatch, end: str
    ) -> None:
        monkeypatch.setenv(URL_VARIABLE, labelled_url)
        assert len(console.written_rows(labelled_url, f"{COUNTING} {end}")) == 2
        assert len(pd.read_csv(BytesIO(console.as_file(Question(sql=f"{COUNTING} {end}"), "CSVWithNames")))) == 2

    def test_only_the_format_at_the_end_is_left_out(self, labelled_url: str) -> None:
        rows = console.written_rows(labelled_url, "SELECT 'a FORMAT b' AS told, 1 AS format WHERE told = 'a FORMAT b'")
        assert list(rows.told) == ["a FORMAT b"]
        assert list(rows.format) == [1]

    @pytest.mark.parametrize("question", [Question("cells", (("last_s", "0"),)), Question(sql=COUNTING)])
    def test_files_hold_every_row(self, labelled_url: str, monkeypatch: pytest.MonkeyPatch, question: Question) -> None:
        monkeypatch.setenv(URL_VARIABLE, labelled_url)
        read = pd.read_parquet(BytesIO(console.as_file(question, "Parquet")))
        assert len(read) == len(pd.read_csv(BytesIO(console.as_file(question, "CSVWithNames")))) == 2

    def test_a_file_of_a_refused_statement(self, labelled_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv(URL_VARIABLE, labelled_url)
        with pytest.raises(RefusedError):
            console.as_file(Question(sql="DROP TABLE graph_executions"), "CSVWithNames")


class TestChart:
    ROWS = pd.DataFrame(
        {
            "graph": [f"P{number}" for number in range(20)],
            "at": pd.Timestamp("2026-11-01", tz="UTC"),
            "cost.ns": range(20),
            "parts": [[1, 2]] * 20,
        }
    )

    def test_defaults(self) -> None:
        assert labels(self.ROWS) == ["graph"]
        assert default_across(self.ROWS) == "at"
        assert default_up(self.ROWS, "at") == "cost.ns"

    @pytest.mark.parametrize("mark", ["points", "line", "bars"])
    @pytest.mark.parametrize("across", ["graph", "at", "cost.ns"])
    def test_any_column_can_be_drawn(self, mark: Any, across: str) -> None:
        spec = answer_chart(self.ROWS, across, "cost.ns", "graph", mark, units={"cost.ns": "ns"}).to_dict()
        assert spec["encoding"]["y"]["title"] == "cost.ns [ns]"
        (data,) = spec["datasets"].values()
        assert len(data) == 20
        assert len({row["by"] for row in data}) == GROUPS_MAX + 1

    def test_groups_are_told_apart_without_colour(self) -> None:
        assert "shape" in answer_chart(self.ROWS, "at", "cost.ns", "graph").to_dict()["encoding"]

    def test_an_instant_that_is_missing(self) -> None:
        rows = self.ROWS.assign(at=self.ROWS["at"].where(self.ROWS.index > 0))
        (data,) = answer_chart(rows, "at", "cost.ns").to_dict()["datasets"].values()
        assert data[0]["across"] is None
