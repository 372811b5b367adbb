"""Names given on the command line: cost models and scenarios."""

from collections.abc import Collection, Sequence
from difflib import get_close_matches
from fnmatch import fnmatchcase
from typing import Annotated, Final

import typer

from engine_hooks.commands.simulate.errors import SimulateCommandError
from engine_hooks.cost_model.registry import COST_MODELS
from engine_hooks.simulator.cell import POLICIES
from engine_hooks.simulator.experiment import OTHER_LANES, PACKAGES, lanes_scenario, package_scenario
from engine_hooks.simulator.invented import INVENTED
from engine_hooks.simulator.many_cells import usable_cores
from engine_hooks.simulator.parameters import Scenario
from engine_hooks.simulator.scenarios import SCENARIOS

ModelsOption = Annotated[
    list[str] | None,
    typer.Option("--models", metavar="MODEL", help=f"Of {', '.join(COST_MODELS)}; repeatable, or with commas."),
]
MoreModels = Annotated[
    list[str] | None, typer.Argument(metavar="[MODEL]...", help="The same, so that --models takes several in a row.")
]
SeedOption = Annotated[int, typer.Option(min=0, help="Another seed is another set of cells.")]
JobsOption = Annotated[int | None, typer.Option(min=1, help="Processes.", show_default="every core")]
ListOption = Annotated[bool, typer.Option("--list", help="Print the names of the scenarios to choose from, and end.")]
JsonOption = Annotated[bool, typer.Option("--json", help="Print JSON.")]

CELL_SCENARIOS: Final[dict[str, Scenario]] = {
    **{package.name: package_scenario(package) for package in PACKAGES},
    **{f"{lanes} lanes": lanes_scenario(lanes) for lanes, *_ in OTHER_LANES},
    **SCENARIOS,
    **INVENTED,
}
"""Every scenario by name: the experiment's packages, its other numbers of lanes, the regret table's, the invented."""

NEAREST_MAX: Final = 3
"""Names told to who gave one that there is not."""


def jobs_of(jobs: int | None) -> int:
    """How many processes to use."""
    return jobs or usable_cores()


def models_of(options: Sequence[str] | None, more: Sequence[str] | None, default: tuple[str, ...]) -> tuple[str, ...]:
    """The models asked for, each once, in the order given; `default` if none was.

    Raises:
        SimulateCommandError: one of them does not exist.
    """
    given = [name.strip() for text in (*(options or ()), *(more or ())) for name in text.split(",") if name.strip()]
    for name in given:
        if name not in COST_MODELS:
            raise SimulateCommandError(f"no cost model is called {name!r}; there are {', '.join(COST_MODELS)}")
    return tuple(dict.fromkeys(given)) or default


def policy_of(name: str) -> str:
    """A cost model, or the oracle.

    Raises:
        SimulateCommandError: there is none of that name.
    """
    if name not in POLICIES:
        raise SimulateCommandError(f"no cost model is called {name!r}; there are {', '.join(POLICIES)}")
    return name


def scenarios_of(patterns: Sequence[str] | None, *, invented: bool = False) -> list[Scenario]:
    """The regret table's scenarios, or the invented ones: those that match any of the patterns, all without patterns.

    Raises:
        SimulateCommandError: a pattern matches none.
    """
    among = INVENTED if invented else SCENARIOS
    for pattern in patterns or ():
        if not any(fnmatchcase(name, pattern) for name in among):
            command = f"tachograph simulate scenarios{' --invented' if invented else ''} --list"
            raise SimulateCommandError(_unknown_scenario(pattern, among, command))
    return [one for name, one in among.items() if not patterns or any(fnmatchcase(name, given) for given in patterns)]


def cell_scenario(name: str) -> Scenario:
    """A scenario by name.

    Raises:
        SimulateCommandError: there is none of that name.
    """
    try:
        return CELL_SCENARIOS[name]
    except KeyError:
        raise SimulateCommandError(_unknown_scenario(name, CELL_SCENARIOS, "tachograph simulate cell --list")) from None


def _unknown_scenario(name: str, among: Collection[str], command: str) -> str:
    """That there is none of that name, the nearest few, and the command that prints all."""
    wanted = name.strip("* ").casefold()
    holding = [one for one in among if wanted and wanted in one.casefold()]
    near = list(dict.fromkeys([*holding, *get_close_matches(wanted, among, NEAREST_MAX)]))[:NEAREST_MAX]
    nearest = f"; nearest: {'; '.join(near)}" if near else ""
    return f"no scenario is called {name!r}{nearest}; `{command}` prints all {len(among)}"
