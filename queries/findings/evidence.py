"""Evidence put together: the sentence, its figures, and the queries that show it."""

from collections.abc import Iterable

from queries.findings.findings import SEQUENCES_MAX, Evidence, Quantity, QueryUse
from queries.findings.record import CellRecord


class Witness:
    """Makes the evidence of one cell."""

    def __init__(self, record: CellRecord) -> None:
        self._where = {"service_instance_id": record.service_instance_id, "cell": record.cell}

    def that(
        self,
        says: str,
        *queries: str,
        sequences: Iterable[int | None] = (),
        **quantities: tuple[float, str],
    ) -> Evidence:
        """Evidence with its figures as `name=(value, unit)`, and the catalogue's queries that show it in this cell."""
        return Evidence(
            says,
            tuple(sequence for sequence in sequences if sequence is not None)[:SEQUENCES_MAX],
            tuple(Quantity(name, float(value), unit) for name, (value, unit) in quantities.items()),
            tuple(QueryUse(name, self._where) for name in queries),
        )


def ms(ns: float | None) -> str:
    """A time in the text of a sentence."""
    return "an unknown time" if ns is None else f"{ns / 1e6:.2f} ms"
