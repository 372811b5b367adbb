"""Rules out of files: a broken one is refused with file, line and reason, and the others run."""

import re
from pathlib import Path

import pytest

from queries.alerts.errors import RuleError
from queries.alerts.loading import Rules, load_rules, read_directory
from queries.alerts.rule import Rule
from queries.alerts.templates import filled, filled_link, names_in

GOOD = """\
alert: Mine
query: stuck_engines
parameters: {latest_cells: 5}
when:
  - {column: plain_fraction, above: 0.5, clear_below: 0.4}
for: 30s
severity: info
identity: [host_name]
annotations:
  summary: "{plain_fraction:.0%} plain"
runbook: Look at it.
link: "?host={host_name}"
"""


def read(directory: Path, *texts: str) -> Rules:
    for n, text in enumerate(texts):
        (directory / f"{n}.yaml").write_text(text)
    return read_directory(directory, 10.0)


def test_a_good_rule(tmp_path: Path) -> None:
    rules = read(tmp_path, GOOD)
    assert (rules.refused, rules.warnings) == ((), ())
    rule = rules.named("Mine")
    assert (rule.timing.for_s, rule.timing.forget_after_s, rule.severity) == (30.0, 3600.0, "info")


@pytest.mark.parametrize(
    ("old", "new", "line", "says"),
    [
        ("above: 0.5, clear_below: 0.4", "above: 0.5, clear_below: 0.6", 5, "wrong side"),
        ("above: 0.5, clear_below: 0.4", "below: 0.5, clear_above: 0.4", 5, "wrong side"),
        ("above: 0.5, ", "", 5, "exactly one of"),
        ("above: 0.5", "above: high", 5, "number"),
        ("column: plain_fraction,", "column: plain_fractoin,", 4, "has no column plain_fractoin"),
        ("{column: plain_fraction,", "{column: host_name,", 4, "host_name is no number"),
        ("for: 30s", "for: 3s", 6, "shorter than the 10 s between two evaluations"),
        ("for: 30s", "for: 30", 6, "written 30s, 5m"),
        ("for: 30s", "fro: 30s", 6, "fro: Extra inputs"),
        ("severity: info", "severity: loud", 7, "severity"),
        ("identity: [host_name]", "identity: [plain_fraction]", 8, "measured (fraction)"),
        ("identity: [host_name]", "identity: [hostname]", 8, "no column hostname"),
        ("identity: [host_name]", "identity: []", 8, "all rows would be one alert"),
        ("{plain_fraction:.0%} plain", "{plain:.0%} plain", 10, "no column plain"),
        ("{plain_fraction:.0%} plain", "plain", 9, "no annotation names a column"),
        ("{plain_fraction:.0%} plain", "{plain_fraction.real} plain", 1, "no plain name"),
        ("{plain_fraction:.0%} plain", "{plain_fraction:>99999999} plain", 1, "formats are like"),
        ("summary:", "headline:", 1, "no summary"),
        ("runbook: Look at it.\n", "", 1, "runbook: Field required"),
        ("query: stuck_engines", "query: stuck_engine", 2, "did you mean stuck_engines"),
        ("{latest_cells: 5}", "{latest_cell: 5}", 3, "did you mean latest_cells"),
        ("{latest_cells: 5}", "{at: -1h}", 3, "set by the evaluator"),
        ("{latest_cells: 5}", "{latest_cells: [5]}", 3, "parameters"),
        ("query: stuck_engines\n", "", 1, "either a query or watches"),
        ("severity: info\n", "severity: info\nseverity: warning\n", 8, "twice"),
        ("severity: info\n", "severity: [info\n", 8, "no YAML"),
        ("alert: Mine", "alert: My rule", 1, "alert"),
        ("alert: Mine", "alert: !!python/object/apply:os.system [x]", 1, "could not determine a constructor"),
    ],
)
def test_a_broken_rule_is_refused_and_the_others_run(tmp_path: Path, old: str, new: str, line: int, says: str) -> None:
    assert old in GOOD
    rules = read(tmp_path, GOOD.replace(old, new), GOOD.replace("Mine", "Other"))
    assert [rule.alert for rule in rules.rules] == ["Other"]
    (refused,) = rules.refused
    assert str(refused).startswith(f"{tmp_path / '0.yaml'}:{line}: ")
    assert says in str(refused)
    assert "\n" not in str(refused)


def test_all_faults_are_told_and_the_rule_counts_once(tmp_path: Path) -> None:
    broken = GOOD.replace("above: 0.5", "above: high").replace("severity: info", "severity: loud")
    lint = GOOD.replace("for: 30s", "for: 3s").replace("{latest_cells: 5}", "{latest: 5}").replace("Mine", "Other")
    rules = read(tmp_path, broken.replace("stuck_engines", "nope"), lint, "", "# nothing\n")
    said = [str(fault).removeprefix(f"{tmp_path}/") for fault in rules.refused]
    assert [line.split(": ")[0] for line in said] == ["0.yaml:5", "0.yaml:7", "0.yaml:2", "1.yaml:6", "1.yaml:3"]
    assert "no query nope" in said[2] or "'nope'" in said[2]
    assert rules.rules_refused == 2
    assert rules.warnings == (
        f"{tmp_path / '2.yaml'}:1: no rule stands in it",
        f"{tmp_path / '3.yaml'}:1: no rule stands in it",
    )
    (tmp_path / "empty").mkdir()
    assert read(tmp_path / "empty").warnings[0].startswith(f"{tmp_path / 'empty'}: no *.yaml")


def test_faults_of_form_hide_none_of_the_others(tmp_path: Path) -> None:
    """A condition of wrong form beside one of an unknown column, a missing runbook, a short `for`, no summary, a key twice."""
    text = GOOD.replace("runbook: Look at it.\n", "").replace("for: 30s", "for: 3s\nfro: 1s\nevery: 5s\nevery: 5s")
    text = text.replace("summary:", "headline:").replace("{latest_cells: 5}", "{latest: 5}")
    text = text.replace("when:\n", "when:\n  - {column: nope, above: 1}\n  - {column: stuck, above: x}\n")
    said = [str(fault).removeprefix(f"{tmp_path}/0.yaml:") for fault in read(tmp_path, text).refused]
    assert [": ".join(one.split(": ")[:2]) for one in said] == [
        "11: every stands there twice",
        "6: when.1.above",
        "1: runbook",
        "9: fro",
        "1: annotations has no summary",
        "8: for",
        "4: when",
        "3: parameters",
    ]


def test_one_name_one_rule(tmp_path: Path) -> None:
    rules = read(tmp_path, GOOD + "---\n" + GOOD)
    assert len(rules.rules) == 1
    assert f"{tmp_path / '0.yaml'}:14: Mine stands in {tmp_path / '0.yaml'}:1 too" in str(rules.refused[0])


def test_ones_own_rule_replaces_the_shipped_one(tmp_path: Path) -> None:
    (tmp_path / "mine.yml").write_text(GOOD.replace("Mine", "StuckInPlain"))
    rules = load_rules(tmp_path)
    assert rules.named("StuckInPlain").severity == "info"
    assert len(rules.rules) == len(load_rules().rules)


def test_a_rule_without_a_link_runs_with_a_warning(tmp_path: Path) -> None:
    rules = read(tmp_path, GOOD.replace('link: "?host={host_name}"\n', ""))
    assert rules.rules
    assert "no page of the dashboards" in rules.warnings[0]


def test_the_example_of_the_page_is_well(tmp_path: Path) -> None:
    page = (Path(__file__).parents[2] / "docs/alerting.md").read_text()
    (example,) = re.findall(r"```yaml\n(.*?)```", page, re.DOTALL)
    rules = read(tmp_path, example)
    assert (rules.refused, rules.warnings) == ((), ())
    assert set(Rule.model_fields) - {"for_"} <= set(re.findall(r"^(\w+):", example, re.MULTILINE)) | {"watches"}


def test_the_page_names_every_shipped_rule() -> None:
    page = (Path(__file__).parents[2] / "docs/alerting.md").read_text()
    assert {rule.alert for rule in load_rules().rules} == set(re.findall(r"^\| `([A-Z]\w+)` \|", page, re.MULTILINE))


def test_templates() -> None:
    row = {"a": 0.25, "b": None, "c": "x&y", "n": 1234}
    assert filled("{a:.0%} {a} {b} {c} {n:,d} {{}}", row) == "25% 0.250 unknown x&y 1,234 {}"
    assert filled_link("cell?engine={c}", row) == "cell?engine=x%26y"
    assert names_in("{a:.0%} and {b}") == {"a", "b"}


def test_a_directory_has_no_line(tmp_path: Path) -> None:
    absent = tmp_path / "absent"
    with pytest.raises(RuleError) as refused:
        load_rules(absent)
    assert str(refused.value) == (
        f"{absent}: no directory of rules (No such file or directory): set TACHOGRAPH_ALERT_RULES"
    )
