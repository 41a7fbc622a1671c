"""What a calibration promised of pages from healthy runs.

The unit is that of the calibration: the run or, where runs have no end, the run-day.
"""

from typing import Annotated, Literal, Self

import msgspec
from pydantic import AwareDatetime, Field, model_validator

from sentinel.calibration.page_rates import Rate
from sentinel.common.config_table import ConfigTable
from sentinel.common.days import day_of
from sentinel.detectors.api import Detector
from sentinel.detectors.discovery import all_detectors

Opinion = Literal["useful", "false-alarm"]

USEFUL: Opinion = "useful"
FALSE: Opinion = "false-alarm"


class PageSent(msgspec.Struct, frozen=True):
    """An incident above `info` that was sent to a sink on a day, with what a person said; empty if nothing.
    If it comes back on a later day, that is another page.
    """

    run: str
    incident: str
    detector: str
    variant: str  # of the detector
    at: float  # seconds since the epoch, when it was first sent on that day
    verdict: str

    @property
    def day(self) -> int:
        """The day (UTC), counted from the epoch."""
        return day_of(self.at)

    @property
    def kind(self) -> str:
        """The variant as `Calibration.variants` names it."""
        return f"{self.detector}: {self.variant}"


class Calibration(ConfigTable):
    """What a calibration promises, as its file keeps it.

    The rate is that of runs by which the calibration was not chosen.
    """

    made_at: AwareDatetime = Field(description="when the archive was judged")
    pages_per_run: float | None = Field(
        default=None, ge=0, le=1, description="share of the healthy runs that may page"
    )
    pages_per_run_day: float | None = Field(
        default=None, ge=0, le=1, description="share of the days of healthy runs that may page, instead"
    )
    runs: int = Field(gt=0, description="healthy runs of the archive")
    run_days: int = Field(default=0, ge=0, description="days of theirs on which they logged")
    pages: int = Field(ge=0, description="runs or days that page, each with what was chosen by other runs")
    design_effect: float = Field(
        default=1, ge=1, description="by how much fewer independent days would tell as much"
    )
    variants: dict[str, int] = Field(
        default={}, description="runs or days by what pages, of all healthy runs"
    )
    design_effects: dict[str, Annotated[float, Field(ge=1)]] = Field(
        default={}, description="the same for what pages"
    )

    @model_validator(mode="after")
    def _has_one_budget(self) -> Self:
        if (self.pages_per_run is None) is (self.pages_per_run_day is None):
            raise ValueError("give either pages_per_run or pages_per_run_day")
        if self.daily and not self.run_days:
            raise ValueError("pages_per_run_day needs run_days above 0")
        return self

    @property
    def since(self) -> float:
        """When it was made, in seconds since the epoch."""
        return self.made_at.timestamp()

    @property
    def daily(self) -> bool:
        """Whether its unit is the run-day."""
        return self.pages_per_run_day is not None

    @property
    def budget(self) -> float:
        """The share of the runs, or of their days, that may page."""
        return self.pages_per_run or self.pages_per_run_day or 0.0

    @property
    def rate(self) -> Rate:
        """The rate that it rests on."""
        return self._rate(self.pages, self.design_effect)

    @property
    def highest(self) -> float:
        """The largest share that keeps the promise: the budget, or what so few runs prove."""
        return max(self.budget, self.rate.high)

    def highest_of(self, kind: str) -> float:
        """Return the largest share that one variant may page in: what its pages in the archive prove, at most
        the share of all.

        The variants that still page were chosen because they are quiet, and one of a hundred seems so by
        chance. So the limits of all variants hold together, before any is chosen.
        """
        design_effect = self.design_effects.get(kind, self.design_effect)
        rate = self._rate(self.variants.get(kind, 0), design_effect)
        return min(self.highest, rate.high_of(variants()))

    def _rate(self, pages: int, design_effect: float) -> Rate:
        units = self.run_days if self.daily else self.runs
        return Rate(min(pages, units), units, "run-day" if self.daily else "run", design_effect)

    def __str__(self) -> str:
        limit = f"at most {self.highest:.1%} of healthy {self.rate.unit}s page ({self.budget:.1%} allowed)"
        return f"{limit}: when left out, {self.rate} did"


def of_metrics(detector: str) -> bool:
    """Return whether a calibration counts the pages of a detector.

    That a job crashed or hangs is no question of thresholds, so what checks of the run find does not count,
    and neither do the rules that the user wrote.
    """
    return isinstance(all_detectors().get(detector), Detector)


def variants() -> int:
    """Return the number of variants of which a calibration counts the pages."""
    detectors = all_detectors()
    return sum(len(detector.variants) for name, detector in detectors.items() if of_metrics(name))
