"""What a calibration promised of pages from healthy runs, beside what came of it.

The unit is the run, as in the archive that was calibrated.
"""

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from pydantic import AwareDatetime, Field

from sentinel.detectors.api import Detector
from sentinel.detectors.discovery import all_detectors
from sentinel.ground.config_table import ConfigTable
from sentinel.ground.text import counted

Opinion = Literal["useful", "false-alarm"]

USEFUL: Opinion = "useful"
FALSE: Opinion = "false-alarm"

_DAY_SECONDS = 86400.0
_TAIL = 0.025  # of the chance on each side of an interval


@dataclass(frozen=True)
class PageSent:
    """An incident above `info` of which a sink was told, and what a person said; empty if nobody did."""

    run: str
    incident: str
    detector: str
    verdict: str


@dataclass(frozen=True)
class Rate:
    """How many of some healthy runs page, with the exact 95 % interval of Clopper and Pearson."""

    pages: int
    runs: int

    @property
    def share(self) -> float:
        """The share of the runs that page; 0 of none."""
        return self.pages / self.runs if self.runs else 0.0

    @property
    def low(self) -> float:
        """The lower end of the interval."""
        from scipy.special import betaincinv  # scipy.stats has the same and takes a second to import

        return float(betaincinv(self.pages, self.runs - self.pages + 1, _TAIL)) if self.pages else 0.0

    @property
    def high(self) -> float:
        """The upper end of the interval."""
        from scipy.special import betaincinv

        left = self.runs - self.pages
        return float(betaincinv(self.pages + 1, left, 1 - _TAIL)) if left else 1.0

    def __str__(self) -> str:
        return f"{self.pages} of {self.runs:,} healthy runs ({self.share:.1%}, at most {self.high:.1%})"


class Promise(ConfigTable):
    """What a calibration promises, as its file keeps it.

    The rate is that of runs by which the calibration was not chosen.
    """

    made_at: AwareDatetime = Field(description="when the archive was judged")
    pages_per_run: float = Field(ge=0, le=1, description="share of the healthy runs that may page")
    runs: int = Field(gt=0, description="healthy runs of the archive")
    pages: int = Field(ge=0, description="those of them that page, each with what was chosen by others")

    @property
    def since(self) -> float:
        """When it was made, in seconds since the epoch."""
        return self.made_at.timestamp()

    @property
    def rate(self) -> Rate:
        """The rate that it rests on."""
        return Rate(min(self.pages, self.runs), self.runs)

    @property
    def highest(self) -> float:
        """The largest share of healthy runs that keeps the promise: the budget, or what so few runs prove."""
        return max(self.pages_per_run, self.rate.high)

    def __str__(self) -> str:
        return (
            f"at most {self.highest:.1%} of healthy runs page ({self.pages_per_run:.1%} allowed): "
            f"when left out, {self.rate} did"
        )


Extent = tuple[float | None, float | None]
"""The first and the last time of a log by its own clock; None where it has none."""


@dataclass(frozen=True)
class Realised:
    """What came of a promise since.

    ``runs`` wrote since and count as healthy: they did not crash, and no page was called useful. ``paged``
    of them paged, and in ``false`` of them somebody called a page a false alarm. ``pages`` and ``answers``
    are those of all runs that wrote since, which did so for ``run_days``.
    """

    promise: Promise
    runs: int
    paged: int
    false: int
    pages: int
    answers: Mapping[str, int]
    run_days: float

    @classmethod
    def of(
        cls,
        promise: Promise,
        extents: Mapping[str, Extent],
        crashed: Collection[str],
        pages: Sequence[PageSent],
    ) -> "Realised":
        """Count. ``extents`` has the known runs by id, and ``pages`` what was sent since the promise."""
        wrote = {run: of for run, of in extents.items() if of[1] is None or of[1] > promise.since}
        counts = [page for page in pages if page.run in wrote and of_metrics(page.detector)]
        useful = {page.run for page in counts if page.verdict == USEFUL}
        healthy = wrote.keys() - useful - {*crashed}
        return cls(
            promise,
            runs=len(healthy),
            paged=len(healthy & {page.run for page in counts}),
            false=len(healthy & {page.run for page in counts if page.verdict == FALSE}),
            pages=len(counts),
            answers=Counter(page.verdict for page in counts if page.verdict),
            run_days=sum(_seconds(of, promise.since) for of in wrote.values()) / _DAY_SECONDS,
        )

    @property
    def broken(self) -> bool:
        """Whether more runs paged falsely than the promise and chance allow."""
        return Rate(self.false, self.runs).low > self.promise.highest

    @property
    def advice(self) -> str:
        """What a person has to do about it; empty if nothing."""
        answered = sum(self.answers.values())
        if self.broken:
            return f"recalibrate: {self.answers.get(FALSE, 0)} false of {counted(answered, 'answer')}"
        if Rate(self.paged, self.runs).low > self.promise.highest:
            left = counted(self.pages - answered, "page")
            return f"answer with `sentinel feedback`: if {left} without an answer were false, recalibrate"
        return ""

    def lines(self) -> Sequence[str]:
        """Promised and realised, for a person; the advice comes last if there is any."""
        answers = f"{self.answers.get(FALSE, 0)} false of {counted(sum(self.answers.values()), 'answer')}"
        a_day = f"{self.pages / self.run_days:.2g} a run-day" if self.run_days else "no run-day yet"
        return [
            f"promised: {self.promise}",
            f"realised: {Rate(self.paged, self.runs)}; {counted(self.pages, 'page')}, {a_day}; {answers}",
            *filter(None, [self.advice]),
        ]


def of_metrics(detector: str) -> bool:
    """Whether a calibration counts what it says.

    That a job crashed or hangs is no question of thresholds, so what checks of the run find does not count,
    and neither do the rules that the user wrote.
    """
    return isinstance(all_detectors().get(detector), Detector)


def _seconds(of: Extent, since: float) -> float:
    first, last = of
    return 0.0 if first is None or last is None else max(0.0, last - max(first, since))
