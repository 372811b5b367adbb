"""The command line's settings of sampling, as flags, `TACHOGRAPH_*` and `.env` have them."""

from pydantic import Field
from pydantic_settings import BaseSettings

from collector.sampling.rules import CONTEXT_S_MAX, CONTEXT_S_MIN, SETTLED_S_MAX, SETTLED_S_MIN


class SamplingSettings(BaseSettings):
    """A part of the settings of every command."""

    sampling: bool = Field(
        False, description="Keep healthy cells as rollups only, an hour after their verdict, and all others whole."
    )
    sampling_share: float = Field(0.01, ge=0, le=1, description="Of healthy cells, so many are kept whole as well.")
    sampling_after_s: int = Field(
        3600,
        ge=SETTLED_S_MIN,
        le=SETTLED_S_MAX,
        description="How long after its last verdict a cell's executions are dropped, in s.",
    )
    sampling_context_s: int = Field(
        600,
        ge=CONTEXT_S_MIN,
        le=CONTEXT_S_MAX,
        description="So much before and after a cell that is not healthy is kept whole, in s.",
    )
    sampling_keeps_marked: bool = Field(True, description="Cells that a benchmark marked are kept whole.")
