"""The measured figures that a plan is made of: `figures.json` has each with its source and date."""

import json
from importlib.resources import files
from typing import NamedTuple


class Figure(NamedTuple):
    """One measured figure."""

    value: float
    unit: str
    date: str
    source: str
    meaning: str


class Figures(NamedTuple):
    """All of them, named by their units."""

    executions_per_s_of_an_engine: Figure
    bytes_per_execution: Figure
    rollup_bytes_per_cell: Figure
    second_bytes_per_cell: Figure
    otel_traces_bytes_per_execution: Figure
    otlp_gzip_bytes_per_execution: Figure
    engine_cpu_us_per_execution: Figure
    collector_cpu_us_per_execution: Figure
    server_cpu_us_per_execution: Figure
    otel_traces_cpu_us_per_execution: Figure
    judging_cpu_ms_per_healthy_cell: Figure
    judging_cpu_ms_per_odd_cell: Figure
    viewer_cpu_s_per_s: Figure
    embedded_memory_bytes: Figure


def figures() -> Figures:
    """As the data file has them."""
    read = json.loads(files("collector.capacity").joinpath("figures.json").read_text("utf-8"))["figures"]
    return Figures(**{name: Figure(**read[name]) for name in Figures._fields})


def measured_on() -> str:
    """The machine."""
    read = json.loads(files("collector.capacity").joinpath("figures.json").read_text("utf-8"))
    return str(read["measured_on"])
