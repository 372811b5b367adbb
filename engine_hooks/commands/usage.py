"""A wrong call of the command line is told in one line: what, where, what to do."""

import sys
from collections.abc import Mapping, Sequence
from typing import Any, Final

import typer
from typer.core import TyperGroup

NAME: Final = "tachograph"
NO_VALUE_OF_A_CHOICE: Final = "Value error, "
"""What pydantic, by which typer reads values, begins its words of one that is none of an option's choices with."""


class OneLineUsage(TyperGroup):
    """The outermost group of commands: typer would draw a box about what is wrong, at any depth.

    `--help` stays typer's, less the `<bool>` beside flags, which take no value.
    """

    def main(
        self,
        args: Sequence[str] | None = None,
        prog_name: str | None = NAME,
        complete_var: str | None = None,
        standalone_mode: bool = True,
        windows_expand_args: bool = True,
        **extra: Any,
    ) -> Any:
        """Run a command, and end the process by its exit code, as typer does."""
        given = sys.argv[1:] if args is None else args
        show_no_value_of_flags(self, self.context_settings)
        try:
            code = super().main(given, prog_name, complete_var, False, windows_expand_args, **extra)
        except typer.TyperException as wrong:
            if not standalone_mode:
                raise
            if message := " ".join(wrong.format_message().split()):  # '' where typer has shown the help instead
                typer.echo(line_of(message, command_path(self, given)), err=True)
            sys.exit(wrong.exit_code)
        # Commands return nothing: it is what `typer.Exit` carried.
        return sys.exit(code or 0) if standalone_mode else code


def show_no_value_of_flags(command: Any, context_settings: Mapping[str, Any]) -> None:
    """Typer's help shows `<bool>` beside a flag, as if `--flag true` were taken. At any depth."""
    help_option = command.get_help_option(typer.Context(command, **context_settings))
    for option in (*command.params, help_option):
        if getattr(option, "is_flag", False):
            option.metavar = ""
    for inner in getattr(command, "commands", {}).values():
        show_no_value_of_flags(inner, context_settings)


def line_of(message: str, path: str) -> str:
    """What typer says of a command, as one line of ours."""
    told = (message[0].lower() + message[1:].rstrip(".")).replace(f": {NO_VALUE_OF_A_CHOICE}", ": ", 1)
    return f"{path}: {told}{'' if told.endswith('?') else ';'} see {path} --help"


def command_path(group: TyperGroup, args: Sequence[str]) -> str:
    """The command that arguments call, as far as they name one."""
    names, command = [NAME], group.commands
    for name in args:
        if name not in command:
            break
        names.append(name)
        command = getattr(command[name], "commands", {})
    return " ".join(names)
