"""Conditions on the columns of a row, each with the threshold at which it is clear again."""

import math
from collections.abc import Mapping, Sequence
from typing import Any

from pydantic import BaseModel, ConfigDict, Field, StrictBool, StrictStr, model_validator

from queries.alerts.states import Seen


class Condition(BaseModel):
    """One condition: `{column: plain_fraction_of_two, above: 0.3, clear_below: 0.2}`, or `{column: stuck, is: true}`."""

    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)

    column: str
    above: float | None = None
    clear_below: float | None = None
    """Default: `above`. In between an alert that fires goes on firing."""
    below: float | None = None
    clear_above: float | None = None
    """Default: `below`."""
    equals: StrictBool | StrictStr | None = Field(None, alias="is")

    @model_validator(mode="after")
    def _one_comparison(self) -> "Condition":
        if sum(given is not None for given in (self.above, self.below, self.equals)) != 1:
            raise ValueError("a condition has exactly one of above, below and is")
        if self.clear_below is not None and (self.above is None or self.clear_below > self.above):
            raise ValueError("clear_below goes with above, and is not beyond it: the threshold is on the wrong side")
        if self.clear_above is not None and (self.below is None or self.clear_above < self.below):
            raise ValueError("clear_above goes with below, and is not beyond it: the threshold is on the wrong side")
        return self

    def judge(self, row: Mapping[str, Any]) -> Seen:
        """What the row shows of this condition; a value that is empty or no number shows nothing."""
        value = row.get(self.column)
        if value is None:
            return Seen.MISSING
        if self.equals is not None:
            return Seen.BREACHED if value == self.equals else Seen.CLEAR
        number = float(value)
        if math.isnan(number):
            return Seen.MISSING
        if self.above is not None:
            return _against(number, self.above, self.above if self.clear_below is None else self.clear_below)
        limit = self.below if self.below is not None else 0.0
        return _against(-number, -limit, -limit if self.clear_above is None else -self.clear_above)


def _against(number: float, above: float, clear_below: float) -> Seen:
    if number > above:
        return Seen.BREACHED
    # Without a hysteresis the threshold itself is clear.
    return Seen.CLEAR if number < clear_below or clear_below == above else Seen.WITHIN


def judge(conditions: Sequence[Condition], row: Mapping[str, Any]) -> Seen:
    """All of them together: breached if each is, clear as soon as one is; one of which nothing is known decides nothing
    unless another is clear."""
    seen = {condition.judge(row) for condition in conditions}
    return next(one for one in (Seen.CLEAR, Seen.MISSING, Seen.WITHIN, Seen.BREACHED) if one in seen)
