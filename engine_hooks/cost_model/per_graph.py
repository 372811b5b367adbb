"""What the models have in common: a history for each graph, expiry, and estimates kept until they change."""

from abc import ABC, abstractmethod
from typing import Generic, Protocol, TypeVar

from engine_hooks.cost_model.errors import SettingError, StateError
from engine_hooks.cost_model.model import Estimate, Measurement, SavedState
from engine_hooks.cost_model.rolling_median import RollingMedian

DEFAULT_WINDOW = 16
"""Executions that a median or a share looks back over (golden cases)."""
DEFAULT_EXPIRY_NS = 30_000_000_000
"""Age from which an estimate has expired (golden cases, A7)."""


class History(Protocol):
    """What is remembered of one graph."""

    gpu: RollingMedian
    measured_at_ns: int
    estimate: Estimate | None
    """The present estimate; `None`: to be worked out again."""


H = TypeVar("H", bound=History)


class PerGraphModel(ABC, Generic[H]):
    """Median GPU time of each graph, and whatever handoff the subclass charges."""

    name: str

    def __init__(self, *, gpu_window: int = DEFAULT_WINDOW, expiry_ns: int = DEFAULT_EXPIRY_NS) -> None:
        """`gpu_window`: executions the median GPU time looks back over. `expiry_ns`: age from which it has expired."""
        self.gpu_window = at_least_one("gpu_window", gpu_window)
        self.expiry_ns = at_least_one("expiry_ns", expiry_ns)
        self._histories: dict[str, H] = {}

    def record(self, measurement: Measurement) -> None:
        """Learn from one finished execution."""
        now_ns = measurement.now_ns
        history = self._histories.get(measurement.graph)
        if history is None or now_ns - history.measured_at_ns >= self.expiry_ns:
            # The first measurement after expiry discards the graph's history (A6).
            history = self._histories[measurement.graph] = self._new_history()
        history.measured_at_ns = now_ns  # a queued execution renews it as well (A14)
        history.gpu.add(measurement.gpu_time_ns)
        history.estimate = None
        self._learn_handoff(history, measurement)

    def estimate(self, graph: str, now_ns: int) -> Estimate | None:  # noqa: ARG002 - the value is kept until measured
        """The cost of `graph` as believed at `now_ns`; `None` if it was never measured."""
        history = self._histories.get(graph)
        if history is None:
            return None
        return history.estimate or self._work_out(history)

    def save(self) -> SavedState:
        """The whole state as plain data."""
        return {"model": self.name, "graphs": {graph: self._saved(h) for graph, h in self._histories.items()}}

    def restore(self, state: SavedState) -> None:
        """Take over a saved state in place of the present one."""
        if state.get("model") != self.name:
            raise StateError(f"not a saved state of {self.name}: {state.get('model')!r}; restore it into that model")
        try:
            self._histories = {graph: self._restored(saved) for graph, saved in state["graphs"].items()}
        except (KeyError, TypeError, AttributeError) as error:
            raise StateError(
                f"the saved state of {self.name} is damaged: {error!r}; start from an empty one"
            ) from error

    def _work_out(self, history: H) -> Estimate:
        gpu_ns = history.gpu.median()
        handoff_ns = self._handoff_ns(history)
        measured_at_ns = history.measured_at_ns
        estimate = Estimate(gpu_ns + handoff_ns, gpu_ns, handoff_ns, measured_at_ns, measured_at_ns + self.expiry_ns)
        history.estimate = estimate
        return estimate

    @abstractmethod
    def _new_history(self) -> H: ...

    @abstractmethod
    def _learn_handoff(self, history: H, measurement: Measurement) -> None: ...

    @abstractmethod
    def _handoff_ns(self, history: H) -> int: ...

    @abstractmethod
    def _saved(self, history: H) -> SavedState: ...

    @abstractmethod
    def _restored(self, saved: SavedState) -> H: ...


def at_least_one(setting: str, value: int) -> int:
    """`value`, or `SettingError` if it is below 1."""
    if value < 1:
        raise SettingError(f"{setting} must be at least 1, not {value}")
    return value
