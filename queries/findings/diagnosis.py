"""A cell diagnosed: everything found in it, and the one word for it."""

from collections.abc import Iterable
from typing import Final

from queries.errors import CallError
from queries.findings.acceptance import stretches_of
from queries.findings.conditions import (
    acceptance_collapse_of,
    batch_changed_of,
    clock_ahead_of,
    executions_lost_of,
    feedback_bound_of,
    idle_of,
    of_plain,
)
from queries.findings.costs import costs_of
from queries.findings.decisions import decisions_of
from queries.findings.drafts import with_drafts_charged
from queries.findings.evidence import Witness
from queries.findings.findings import Diagnosis, Finding, Kind
from queries.findings.host import host_bound_of, stumbles_of, stumbling_of
from queries.findings.inflation import inflation_of
from queries.findings.moves import estimates_of
from queries.findings.overcharge import overcharge_of
from queries.findings.plain import being_in_plain
from queries.findings.record import CellRecord
from queries.findings.speed import speed_changes_of
from queries.findings.timeline import timeline_of
from queries.findings.undercharge import undercharge_of

MAIN: Final = (
    Kind.ACCEPTANCE_COLLAPSE,
    Kind.HOST_BOUND,
    Kind.CPU_CONTENTION,
    Kind.DELAY_BURSTS,
    Kind.ESTIMATE_INFLATION,
    Kind.GRAPH_REGRESSION,
    Kind.CLOCK_DRIFT,
    Kind.PLAIN_RIGHT,
    Kind.NO_SPECULATION,
)
"""What a cell is called by, the first that was found: causes before what they cause. Others only go beside it."""


def findings_of(record: CellRecord) -> list[Finding]:
    """What was found in a cell, the most costly first. Pure: equal records give equal findings.

    Raises:
        CallError: the record has no execution.
    """
    return list(diagnose(record).findings)


def label_of(findings: Iterable[Finding]) -> tuple[Kind, tuple[Kind, ...]]:
    """The cell's main label, and what else was found."""
    kinds = list(dict.fromkeys(finding.kind for finding in findings))
    label = next((kind for kind in MAIN if kind in kinds), Kind.HEALTHY)
    return label, tuple(kind for kind in Kind if kind in kinds and kind != label)


def diagnose(record: CellRecord) -> Diagnosis:
    """Everything that can be said of a cell.

    Raises:
        CallError: the record has no execution.
    """
    if not record.executions:
        raise CallError(f"cell {record.cell or '(unnamed)'} of {record.service_instance_id or 'no engine'} is empty")
    timeline, witness = with_drafts_charged(timeline_of(record)), Witness(record)
    costs, stretches = costs_of(timeline), stretches_of(timeline)
    decisions = decisions_of(timeline, costs, stretches)
    estimates = None if decisions is None else estimates_of(decisions, record.before)
    plain = being_in_plain(timeline, decisions, estimates)
    inflation = inflation_of(decisions, estimates, plain, witness) if decisions and estimates else None
    host_bound = host_bound_of(timeline, costs, decisions, witness)
    harmless = inflation is None and host_bound is None
    found = [
        inflation,
        host_bound,
        *stumbling_of(timeline, costs, stumbles_of(timeline, costs), harmless=harmless, witness=witness),
        acceptance_collapse_of(timeline, stretches, witness),
        *speed_changes_of(costs.batch.alike, witness),
        batch_changed_of(costs.batch, witness),
        feedback_bound_of(timeline, witness),
        idle_of(timeline, witness),
        executions_lost_of(timeline, witness),
        clock_ahead_of(record, timeline, witness),
        of_plain(plain, timeline, witness),
    ]
    findings = sorted((finding for finding in found if finding), key=lambda finding: -finding.loss_percent)
    label, also = label_of(findings)
    return Diagnosis(
        label=label,
        also=also,
        findings=tuple(findings),
        being_in_plain=plain,
        expected_loss_percent=decisions.loss_percent if decisions else None,
        tokens_lost=float(decisions.tokens_lost.sum()) if decisions else 0.0,
        tokens_emitted=sum(execution.batch_tokens_emitted or 0 for execution in record.executions),
        seconds=timeline.seconds,
        overcharge=overcharge_of(decisions, estimates) if decisions and estimates and label is Kind.HEALTHY else None,
        undercharge=undercharge_of(decisions) if decisions else None,
    )
