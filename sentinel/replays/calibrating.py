"""How often the runs of an archive would have paged, and what keeps that within a budget.

The unit is the run: runs of one archive are alike, while the steps of one run depend on each other. What is
promised holds for runs like those of the archive, as long as most that nobody marked are healthy.
"""

import math
from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field

from sentinel.alerts.promise import USEFUL, Rate, of_metrics
from sentinel.detectors.api import Severity
from sentinel.ground.text import fits
from sentinel.replays.judged import JudgedRun
from sentinel.sources.base import EndKind


@dataclass(frozen=True, order=True)
class Kind:
    """What pages: one variant of a detector."""

    detector: str
    variant: str

    def __str__(self) -> str:
        return f"{self.detector}: {self.variant}"


LENGTHS = 100, 1_000
"""Points of the metric of a run that has most of them; longer runs are one stratum."""


@dataclass(frozen=True, order=True)
class Stratum:
    """Runs that are alike: of one framework and about as long."""

    framework: str  # empty if it is not known
    up_to: float  # points: one of `LENGTHS`, or infinity

    @classmethod
    def of(cls, run: JudgedRun) -> "Stratum":
        """The stratum of a run."""
        log = run.tracker.log
        points = max(
            (
                sum(series.count for series in of.values())
                for stream in log.streams.values()
                for of in stream.attempt.series.values()
            ),
            default=0,
        )
        up_to = next((most for most in LENGTHS if points <= most), math.inf)
        return cls(log.understanding().framework or "", up_to)

    def __str__(self) -> str:
        length = f"up to {self.up_to:,} points" if self.up_to < math.inf else f"over {LENGTHS[-1]:,} points"
        return f"{self.framework or 'unknown framework'}, {length}"


@dataclass
class Pages:
    """What paged in each run of an archive: in ``healthy`` ones, by their names, and in ``others``.

    ``strata`` has the stratum of each of the healthy ones.
    """

    healthy: dict[str, frozenset[Kind]] = field(default_factory=dict)
    others: dict[str, frozenset[Kind]] = field(default_factory=dict)
    strata: dict[str, Stratum] = field(default_factory=dict)

    def add(self, run: JudgedRun, bad: Collection[str], answers: Mapping[str, str]) -> None:
        """Add a run. It is healthy unless a glob of ``bad`` fits its name, somebody called one of its
        incidents useful, it crashed or it could not be read to its end.
        """
        name = run.tracker.log.name
        ending = run.tracker.log.ending
        marked = any(fits(name, glob) for glob in bad) or any(
            answers.get(incident) == USEFUL for incident in run.incidents
        )
        failed = run.stopped is not None or (ending is not None and ending.outcome is EndKind.CRASHED)
        if marked or failed:
            self.others[name] = _paged(run)
        else:
            self.healthy[name], self.strata[name] = _paged(run), Stratum.of(run)

    def rate(self, informing: Collection[Kind] = ()) -> Rate:
        """How many healthy runs page if some kinds only inform. Raises ValueError if there is none."""
        if not self.healthy:
            raise ValueError("no run of the archive counts as healthy")
        return Rate(sum(not kinds.issubset(informing) for kinds in self.healthy.values()), len(self.healthy))


@dataclass(frozen=True)
class Move:
    """A kind that only informs from now on: in how many healthy runs it paged, and how many of the other
    runs nothing else tells of.
    """

    kind: Kind
    rate: Rate
    lost: int


def kept_within(budget: float, pages: Pages) -> list[Move]:
    """The kinds that have to become quiet so that at most this share of the healthy runs pages.

    Each time that one goes which takes the fewest faults with it for each healthy run that it frees.
    """
    moves: list[Move] = []
    informing: set[Kind] = set()
    while (rate := pages.rate(informing)).pages > budget * rate.runs:
        healthy = _counted(pages.healthy.values(), informing)
        alone, lost = _alone(pages.healthy.values(), informing), _alone(pages.others.values(), informing)
        kind = min(sorted(healthy), key=lambda kind: (lost[kind] / (alone[kind] or 0.5), -healthy[kind]))
        informing.add(kind)
        moves.append(Move(kind, Rate(healthy[kind], rate.runs), lost[kind]))
    return moves


def _counted(runs: Iterable[frozenset[Kind]], informing: Collection[Kind]) -> Counter[Kind]:
    return Counter(kind for kinds in runs for kind in kinds if kind not in informing)


def _alone(runs: Iterable[frozenset[Kind]], informing: Collection[Kind]) -> Counter[Kind]:
    """In how many runs each kind is the only one that still pages."""
    left = (kinds.difference(informing) for kinds in runs)
    return Counter(kind for kinds in left if len(kinds) == 1 for kind in kinds)


def _paged(run: JudgedRun) -> frozenset[Kind]:
    """What a sink was told of a run's metrics that is more than information."""
    sent = (
        outcome for outcomes in run.told.values() for outcome in outcomes if outcome.decision.reason.sends
    )
    return frozenset(
        Kind(outcome.incident.detector, outcome.incident.variant)
        for outcome in sent
        if outcome.incident.severity > Severity.INFO and of_metrics(outcome.incident.detector)
    )
