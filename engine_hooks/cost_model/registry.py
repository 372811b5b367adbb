"""Cost models by name."""

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, Final

from engine_hooks.cost_model.drained_share import DrainedShare
from engine_hooks.cost_model.errors import SettingError, UnknownCostModelError
from engine_hooks.cost_model.exposed_mean import ExposedMean
from engine_hooks.cost_model.idle_gap import IdleGap
from engine_hooks.cost_model.model import CostModel
from engine_hooks.cost_model.startup_median import StartupMedian

COST_MODELS: Final[Mapping[str, Callable[..., CostModel]]] = MappingProxyType(
    {model.name: model for model in (ExposedMean, DrainedShare, StartupMedian, IdleGap)}
)


def cost_model_named(name: str, **settings: Any) -> CostModel:
    """A new cost model of that name; `settings` are its keyword arguments.

    Raises `UnknownCostModelError` for the name, `SettingError` for a setting it does not have or refuses.
    """
    try:
        make = COST_MODELS[name]
    except KeyError:
        raise UnknownCostModelError(f"no cost model is called {name!r}; there are {', '.join(COST_MODELS)}") from None
    try:
        return make(**settings)
    except (TypeError, ValueError, ZeroDivisionError) as error:
        raise SettingError(f"cost model {name}: {error}") from error
