"""A wrong call of any command is told in one line (what, where, what to do), with exit code 2; help stays rich."""

import io
from collections.abc import Iterator
from contextlib import redirect_stderr, redirect_stdout
from typing import Any, cast

import pytest
import typer

from collector.commands.collect import CollectSettings
from engine_hooks.commands.usage import OneLineUsage
from tachograph import Settings, application, takes_settings


def commands(command: Any, path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], Any]]:
    yield path, command
    for name, inner in getattr(command, "commands", {}).items():
        yield from commands(inner, (*path, name))


EVERY = dict(commands(typer.main.get_command(application())))
WITH_ARGUMENT = [path for path, one in EVERY.items() if any(each.required for each in one.params)]
FIGURES = {
    (path, each.opts[0])
    for path, one in EVERY.items()
    for each in one.params
    if each.opts[0].startswith("--") and not each.is_flag and each.type_descriptor.annotation in (int, float)
}
NAME = " ".join


def called(*arguments: str) -> tuple[int, str, str]:
    """Exit code, standard output and standard error."""
    out, err = io.StringIO(), io.StringIO()
    with redirect_stdout(out), redirect_stderr(err), pytest.raises(SystemExit) as ending:
        EVERY[()].main(arguments)
    return ending.value.code, out.getvalue(), err.getvalue()


def wrong_call(*arguments: str) -> str:
    """The one line that it gives."""
    code, out, err = called(*arguments)
    assert (code, out) == (2, "")
    (line,) = err.splitlines()
    return line


def told_of(path: tuple[str, ...], line: str) -> str:
    """What is wrong, of a line that names the command and where to look."""
    command = NAME(("tachograph", *path))
    assert line.startswith(f"{command}: ")
    assert line.endswith(f" see {command} --help")
    return line.removeprefix(f"{command}: ")


@pytest.mark.parametrize("path", EVERY, ids=NAME)
def test_an_option_that_no_command_knows(path: tuple[str, ...]) -> None:
    if path == ("retention", "set"):  # takes -1 as a figure
        return
    assert told_of(path, wrong_call(*path, "--nonsuch")).startswith("no such option: --nonsuch")


@pytest.mark.parametrize("path", WITH_ARGUMENT, ids=NAME)
def test_an_argument_that_is_missing(path: tuple[str, ...]) -> None:
    assert told_of(path, wrong_call(*path)).startswith("missing ")


@pytest.mark.parametrize("value", ["inf", "1e400", "nan"])
def test_a_value_that_is_without_end(value: str) -> None:
    assert (("demo", "torch"), "--seconds") in FIGURES
    of_settings = {f"--{name.replace('_', '-')}" for name in Settings.model_fields}  # those have their own ranges
    for path, option in sorted(FIGURES):
        if option not in of_settings:
            assert f"'{option}'" in told_of(path, wrong_call(*path, option, value))


def test_a_value_that_is_none_of_the_choices() -> None:
    for path, option in ((("changes",), "--metric"), (("import",), "--kind"), (("demo", "torch"), "--clock")):
        line = wrong_call(*path, option, "oops", *(["file"] if path == ("import",) else []))
        assert told_of(path, line).startswith(f"invalid value for '{option}': 'oops' is not one of '")


def test_a_list_of_values_of_which_one_is_without_end() -> None:
    line = wrong_call("simulate", "live", "--stumble", "3", "--stumble", "inf")
    assert told_of(("simulate", "live"), line).startswith("invalid value for '--stumble': inf is no number")


def test_a_value_that_is_none() -> None:
    assert ("up",) in {path for path, _ in FIGURES}
    for path, option in sorted(FIGURES):
        assert f"'{option}'" in told_of(path, wrong_call(*path, option, "nonsense"))
        assert option in told_of(path, wrong_call(*path, option))


def test_a_command_that_there_is_not() -> None:
    assert told_of((), wrong_call("nonsense")) == "no such command 'nonsense'; see tachograph --help"
    told = told_of(("alerts", "silence"), wrong_call("alerts", "silence", "crete"))
    assert told.startswith("no such command 'crete'. Did you mean 'create'? see ")


@pytest.mark.parametrize("path", EVERY, ids=NAME)
def test_help_is_rich(path: tuple[str, ...]) -> None:
    code, out, err = called(*path, "--help")
    assert (code, err) == (0, "")
    assert "╭─ Options" in out
    if not path:
        assert all(f"─ {panel} ─" in out for panel in ("Asking", "Looking", "Collecting and the store"))


def test_no_arguments_show_the_help() -> None:
    code, out, err = called()
    assert code == 2
    assert "Usage: tachograph" in out
    assert err == ""


@pytest.mark.parametrize("path", EVERY, ids=NAME)
def test_the_help_shows_no_value_that_a_flag_would_not_take(path: tuple[str, ...]) -> None:
    code, out, _ = called(*path, "--help")
    assert (code, "--help" in out, "<bool>" in out) == (0, True, False)


SWITCHES = [name for name, field in Settings.model_fields.items() if field.annotation is bool]


@pytest.mark.parametrize("setting", SWITCHES)
@pytest.mark.parametrize("wanted", [True, False])
def test_a_setting_that_is_true_or_false_has_a_flag_for_each(setting: str, wanted: bool) -> None:
    seen: list[Settings] = []
    app = typer.Typer(cls=OneLineUsage)

    def show(settings: CollectSettings) -> None:
        seen.append(cast("Settings", settings))

    app.command()(takes_settings(show, reads=False))
    app.callback()(lambda: None)
    flag = f"--{'' if wanted else 'no-'}{setting.replace('_', '-')}"
    with pytest.raises(SystemExit) as ending:
        app(["show", flag])
    assert (ending.value.code, [getattr(settings, setting) for settings in seen]) == (0, [wanted])
