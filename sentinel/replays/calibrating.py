"""How often the runs of an archive would have paged, and what keeps that within a budget.

The unit is the run: runs of one archive are alike, while the steps of one run depend on each other. What is
promised holds for runs like those of the archive, as long as most that nobody marked are healthy.
"""

from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field

from scipy.special import betaincinv  # scipy.stats has the same and takes a second to import

from sentinel.alerts.tables import Opinion
from sentinel.detectors.api import Detector, Severity
from sentinel.detectors.discovery import all_detectors
from sentinel.ground.text import fits
from sentinel.replays.judged import JudgedRun
from sentinel.sources.base import EndKind

USEFUL: Opinion = "useful"
"""What people answer about an incident that was right."""


@dataclass(frozen=True, order=True)
class Kind:
    """What pages: one variant of a detector."""

    detector: str
    variant: str

    def __str__(self) -> str:
        return f"{self.detector}: {self.variant}"


@dataclass(frozen=True)
class Rate:
    """How many of some healthy runs page."""

    pages: int
    runs: int

    def __str__(self) -> str:
        share = self.pages / self.runs
        highest = betaincinv(self.pages + 1, self.runs - self.pages, 0.975) if share < 1 else 1.0
        return f"{self.pages} of {self.runs:,} healthy runs ({share:.1%}, at most {highest:.1%})"


@dataclass
class Pages:
    """What paged in each run of an archive: in ``healthy`` ones, by their names, and in ``others``."""

    healthy: dict[str, frozenset[Kind]] = field(default_factory=dict)
    others: dict[str, frozenset[Kind]] = field(default_factory=dict)

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
        (self.others if marked or failed else self.healthy)[name] = _paged(run)

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
    """What a sink was told of a run's metrics that is more than information.

    That a job crashed or hangs is no question of thresholds, so what checks of the run find does not count,
    and neither do the rules that the user wrote.
    """
    sent = (
        outcome for outcomes in run.told.values() for outcome in outcomes if outcome.decision.reason.sends
    )
    return frozenset(
        Kind(outcome.incident.detector, outcome.incident.variant)
        for outcome in sent
        if outcome.incident.severity > Severity.INFO
        and isinstance(all_detectors().get(outcome.incident.detector), Detector)
    )
