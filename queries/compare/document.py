"""A comparison for machines."""

from typing import Any

from queries.compare.comparison import ArmCells, Comparison, Group
from queries.compare.shifts import Interval
from queries.compare.wording import how_computed, remarks


def document(comparison: Comparison) -> dict[str, Any]:
    """Everything, as JSON has it. Shifts are in % of the pair's mean, or in percentage points (`shift_unit`)."""
    return {
        "arms": {"before": comparison.arms[0], "after": comparison.arms[1]},
        "by": list(comparison.by),
        "metric": str(comparison.metric),
        "shift_unit": comparison.unit,
        "smallest_shift": comparison.smallest_shift,
        "groups": [
            dict(zip(comparison.by, group.labels, strict=True)) | group_document(group) for group in comparison.groups
        ],
        "overall": group_document(comparison.overall),
        "left_out": [
            {
                "service_instance_id": cell.instance,
                "cell": cell.cell,
                "cell_arm": cell.arm,
                "cell_position": cell.position,
                "reason": reason,
            }
            for cell, reason in comparison.left_out
        ],
        "labels_apart": list(comparison.apart),
        "remarks": remarks(comparison),
        "how": how_computed(comparison),
    }


def group_document(group: Group) -> dict[str, Any]:
    """One row."""
    return {
        "verdict": str(group.verdict),
        "before": arm_document(group.before),
        "after": arm_document(group.after),
        "pairs": group.shift.pairs,
        "hodges_lehmann": group.shift.hodges_lehmann,
        "hodges_lehmann_interval": interval_document(group.shift.hodges_lehmann_interval),
        "mean": group.shift.mean,
        "mean_interval": interval_document(group.shift.mean_interval),
        "p_value": group.shift.p_value,
        "p_value_adjusted": group.p_value_adjusted,
        "sd_of_pairs": group.shift.sd,
        "same_arm_band": group.same_arm_band,
        "same_arm_pairs": group.same_arm_pairs,
        "stuck_p_value": group.stuck_p_value,
        "more_cells": group.more_cells._asdict() if group.more_cells else None,
    }


def arm_document(arm: ArmCells) -> dict[str, Any]:
    """One arm's paired cells, in the order of the pairs."""
    return {"mean": arm.mean, "stuck_cells": sum(arm.stuck), "cells": list(arm.values), "stuck": list(arm.stuck)}


def interval_document(interval: Interval | None) -> list[float] | None:
    """Low and high."""
    return list(interval) if interval else None
