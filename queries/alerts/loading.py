"""Rules out of their files: shipped ones, and the user's beside them. A broken rule is refused, the others load."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, NamedTuple

import yaml
from pydantic import ValidationError

from queries.alerts.errors import RuleError, UnknownRuleError
from queries.alerts.lint import complaints
from queries.alerts.rule import Rule
from queries.alerts.unseen import unseen

SHIPPED: Final = Path(__file__).parent / "rules"
FILES_MAX: Final = 200
RULE_BYTES_MAX: Final = 256 * 1024
"""Of one file."""
_TYPES: Final = (["bool"], ["int"], ["float"], ["str"])
"""How pydantic ends the place of a value that fits none of several types, once for each."""
INTERVAL_S: Final = 10.0
"""Between two evaluations, where nothing else is said."""


Faults = tuple[RuleError, ...]
"""All that is wrong with one rule."""


@dataclass(frozen=True)
class LoadedRule:
    """A rule, and where it stands."""

    rule: Rule
    file: Path
    line: int


class Rules(NamedTuple):
    """What was loaded."""

    loaded: tuple[LoadedRule, ...]
    refused: tuple[RuleError, ...]
    """One for each fault, `file:line: reason`."""
    warnings: tuple[str, ...] = ()
    """Of rules that run all the same, and of files without a rule, in the same form."""
    rules_refused: int = 0
    """Rules, or files, with at least one fault."""

    @property
    def rules(self) -> tuple[Rule, ...]:
        return tuple(one.rule for one in self.loaded)

    def named(self, name: str) -> Rule:
        """The rule of that name.

        Raises:
            UnknownRuleError: there is none.
        """
        for rule in self.rules:
            if rule.alert == name:
                return rule
        raise UnknownRuleError(f"no rule {name!r}; there are {', '.join(rule.alert for rule in self.rules)}")


def load_rules(own: Path | None = None, interval_s: float = INTERVAL_S) -> Rules:
    """The shipped rules and the user's. One of the user's replaces a shipped one of its name.

    Args:
        own: The user's directory; None is none.
        interval_s: How often rules are evaluated.

    Raises:
        RuleError: the directory cannot be read.
    """
    mine = read_directory(own, interval_s) if own else Rules((), ())
    shipped = read_directory(SHIPPED, interval_s)
    names = {rule.alert for rule in mine.rules}
    kept = tuple(one for one in shipped.loaded if one.rule.alert not in names)
    return Rules(
        kept + mine.loaded,
        shipped.refused + mine.refused,
        shipped.warnings + mine.warnings,
        shipped.rules_refused + mine.rules_refused,
    )


def read_directory(directory: Path, interval_s: float) -> Rules:
    """Every `*.yaml` and `*.yml` of a directory, in the order of their names. Raises as `load_rules`."""
    try:
        files = sorted(file for file in directory.iterdir() if file.suffix in (".yaml", ".yml"))
    except OSError as wrong:
        raise RuleError(f"{directory}: no directory of rules ({wrong.strerror}): set TACHOGRAPH_ALERT_RULES") from wrong
    if len(files) > FILES_MAX:
        raise RuleError(f"{directory}: {len(files)} files of rules: at most {FILES_MAX} are read")
    loaded: dict[str, LoadedRule] = {}
    faults: list[Faults] = []
    warnings: list[str] = [] if files else [f"{directory}: no *.yaml or *.yml stands in it"]
    for file in files:
        found = list(read_file(file, interval_s, warnings))
        if not found:
            warnings.append(f"{file}:1: no rule stands in it")
        for one in found:
            if not isinstance(one, LoadedRule):
                faults.append(one)
            elif first := loaded.get(one.rule.alert):
                twice = f"{file}:{one.line}: {one.rule.alert} stands in {first.file}:{first.line} too"
                faults.append((RuleError(twice),))
            else:
                loaded[one.rule.alert] = one
    refused = tuple(fault for of_one in faults for fault in of_one)
    return Rules(tuple(loaded.values()), refused, tuple(warnings), len(faults))


def read_file(file: Path, interval_s: float, warnings: list[str]) -> Iterator[LoadedRule | Faults]:
    """The rules of one file, one a YAML document; of a broken one all that is wrong."""
    try:
        text = file.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as wrong:
        yield (RuleError(f"{file}:1: cannot be read: {wrong}"),)
        return
    if len(text) > RULE_BYTES_MAX:
        yield (RuleError(f"{file}:1: larger than {RULE_BYTES_MAX} bytes"),)
        return
    try:
        for document in yaml.compose_all(text, Loader=yaml.SafeLoader):
            if document is not None:
                yield read_rule(document, file, interval_s, warnings)
    except yaml.MarkedYAMLError as wrong:
        line = wrong.problem_mark.line + 1 if wrong.problem_mark else 1
        yield (RuleError(f"{file}:{line}: no YAML: {wrong.problem}"),)
    except yaml.YAMLError as wrong:
        yield (RuleError(f"{file}:1: no YAML: {str(wrong).splitlines()[0]}"),)


def read_rule(document: yaml.Node, file: Path, interval_s: float, warnings: list[str]) -> LoadedRule | Faults:
    """One rule out of its document."""
    line = document.start_mark.line + 1
    if not isinstance(document, yaml.MappingNode):
        return (RuleError(f"{file}:{line}: a rule is a mapping that begins with `alert: NAME`"),)
    faults = [
        RuleError(f"{file}:{repeated.start_mark.line + 1}: {repeated.value} stands there twice")
        for repeated in _repeated(document)
    ]
    try:
        rule = Rule.model_validate(_plain(document))
    except (ValidationError, yaml.YAMLError, RecursionError, ValueError) as wrong:
        return (*faults, *_refusals(wrong, document, file, interval_s))
    for complaint in complaints(rule, interval_s):
        place = f"{file}:{_line_of(document, complaint.field.split('.'))}: {rule.alert}"
        if complaint.is_error:
            faults.append(RuleError(f"{place}: {complaint.field}: {complaint.says}"))
        else:
            warnings.append(f"{place}: {complaint.field}: {complaint.says}")
    return tuple(faults) or LoadedRule(rule, file, line)


def _plain(document: yaml.Node) -> Any:
    """The values of a document."""
    loader = yaml.SafeLoader("")
    try:
        return loader.construct_document(document)
    finally:
        loader.dispose()


def _refusals(wrong: Exception, document: yaml.MappingNode, file: Path, interval_s: float) -> Iterator[RuleError]:
    """All that is wrong with a document that is no rule: its form, and what is wrong beyond that in what is well formed."""
    if not isinstance(wrong, ValidationError):
        yield RuleError(f"{file}:{document.start_mark.line + 1}: {str(wrong).splitlines()[0]}")
        return
    for place, message in _own_faults(wrong):
        said = message.removeprefix("Value error, ")
        reason = f"{'.'.join(place)}: {said}" if place else said
        yield RuleError(f"{file}:{_line_of(document, place)}: {reason}")
    for field, says in unseen(_plain(document), [place for place, _ in _own_faults(wrong)], interval_s):
        where = f"{file}:{_line_of(document, field.split('.'))}"
        yield RuleError(f"{where}: {field}: {says}" if field else f"{where}: {says}")


def _own_faults(wrong: ValidationError) -> Iterator[tuple[list[str], str]]:
    """Where, and what; not what only follows from a fault within, and of a value that fits none of several types once."""
    places = [[str(part) for part in error["loc"]] for error in wrong.errors()]
    told: list[list[str]] = []
    for place, error in zip(places, wrong.errors(), strict=True):
        is_consequence = any(len(other) > len(place) and other[: len(place)] == place for other in places)
        is_other_type = place[-1:] in _TYPES and any(place[:-1] == one[:-1] for one in told)
        if not is_consequence and not is_other_type:
            told.append(place)
            yield place, error["msg"]


def _line_of(document: yaml.Node, place: Sequence[str]) -> int:
    """The line of a field, as near as the document has it."""
    node: Any = document
    line: int = document.start_mark.line + 1
    for part in place:
        if isinstance(node, yaml.SequenceNode) and part.isdecimal() and int(part) < len(node.value):
            node = node.value[int(part)]
            line = node.start_mark.line + 1
        elif isinstance(node, yaml.MappingNode):
            found = [(key, value) for key, value in node.value if key.value == part]
            if not found:
                break
            line, node = found[0][0].start_mark.line + 1, found[0][1]
    return line


def _repeated(document: yaml.MappingNode) -> Iterator[yaml.ScalarNode]:
    """The keys that stand there again: YAML would silently take the last."""
    seen: set[str] = set()
    for key, _ in document.value:
        if isinstance(key, yaml.ScalarNode):
            if key.value in seen:
                yield key
            seen.add(key.value)
