"""How many known change points are found, and how many found are none, by kind of series. `make bench-changes`."""

import argparse
import time

from rich.console import Console

from queries.changes.detection import change_points
from tests.fixtures.known_changes import KINDS, known_series, matches


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--series", type=int, default=900)
    parser.add_argument("--seed", type=int, default=2026)
    chosen = parser.parse_args()
    console = Console(highlight=False)
    counts = {kind: [0, 0, 0] for kind in KINDS}
    spent = 0.0
    for series in known_series(chosen.series, chosen.seed):
        began = time.process_time()
        found = [point.start for point in change_points(series.values)]
        spent += time.process_time() - began
        for place, count in enumerate((len(series.changes), matches(found, series.changes), len(found))):
            counts[series.kind][place] += count
    for kind, (known, hits, found_count) in counts.items():
        console.print(f"{kind:20} known {known:4}  found {hits:4}  wrong {found_count - hits:4}")
    known, hits, found_count = (sum(count[place] for count in counts.values()) for place in range(3))
    console.print(
        f"precision {hits / found_count:.3f}, recall {hits / known:.3f}, {1000 * spent / chosen.series:.1f} ms a series,"
        f" {chosen.series} series, seed {chosen.seed}"
    )


if __name__ == "__main__":
    main()
