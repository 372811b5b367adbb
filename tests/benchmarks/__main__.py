"""Every benchmark by one entry: `make bench`, `make bench ARGS='--quick --only recorder'`.

Prints a table a topic and merges its rows into `build/bench.json`. `python -m tests.benchmarks compare A.json B.json`
shows two runs side by side.
"""

import ast
import time
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from typing import Annotated, Final

import typer

from tests.benchmarks.report import BENCH_JSON, Result, comparison, measured, merge, read, show, table_of

_FOLDER: Final = Path(__file__).parent


def topics() -> dict[str, str]:
    """Each `bench_NAME.py` that has `results`, by its name, with the first line of what it says of itself."""
    modules = {file.stem.removeprefix("bench_"): ast.parse(file.read_text()) for file in _FOLDER.glob("bench_*.py")}
    return {name: _title(module) for name, module in sorted(modules.items()) if _has_results(module)}


def _has_results(module: ast.Module) -> bool:
    return any(isinstance(part, ast.FunctionDef) and part.name == "results" for part in module.body)


def _title(module: ast.Module) -> str:
    return (ast.get_docstring(module) or "").partition("\n")[0].rstrip(".:")


TOPICS: Final = topics()
app = typer.Typer(help=__doc__, add_completion=False, pretty_exceptions_enable=False)


@app.callback(invoke_without_command=True)
def bench(
    context: typer.Context,
    quick: Annotated[bool, typer.Option("--quick", help="A short run: smaller data, fewer repeats.")] = False,
    only: Annotated[list[str] | None, typer.Option(help=f"One of {', '.join(TOPICS)}; may be repeated.")] = None,
    file: Annotated[Path, typer.Option("--json", help="Where the rows are merged into.")] = BENCH_JSON,
) -> None:
    """Measure everything, or the topics named."""
    if context.invoked_subcommand:
        return
    if unknown := set(only or ()) - set(TOPICS):
        raise typer.BadParameter(f"no topic {', '.join(sorted(unknown))}: there are {', '.join(TOPICS)}")
    failed = [topic for topic in only or TOPICS if not _bench_one(topic, quick, file)]
    if failed:
        raise SystemExit(f"not measured: {', '.join(failed)}")


def _bench_one(topic: str, quick: bool, file: Path) -> bool:
    """Measure one topic in a process of its own, whose memory and embedded engine end with it."""
    began = time.monotonic()
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as process:
        try:
            results = process.submit(measured, topic, quick).result()
        except Exception as error:  # one that fails leaves the others their turn
            typer.echo(f"{topic}: {type(error).__name__}: {error}", err=True)
            return False
    merge(results, file)
    show(table_of(results, f"{TOPICS[topic]} ({time.monotonic() - began:.0f} s)"))
    return True


@app.command()
def compare(before: Path, after: Path) -> None:
    """Show two files of rows side by side."""
    show(comparison(_rows(before), _rows(after), (before.name, after.name)))


def _rows(file: Path) -> list[Result]:
    try:
        return read(file)
    except OSError as error:
        raise SystemExit(f"{file}: {error.strerror}") from error
    except (TypeError, ValueError) as error:
        raise SystemExit(f"{file} holds no rows of a benchmark: `make bench` writes them") from error


if __name__ == "__main__":
    app()
