"""How often the runs of an archive would have paged, and what keeps that within a budget.

The unit is the run: runs of one archive are alike, while the steps of one run depend on each other. What is
promised holds for runs like those of the archive, as long as most that nobody marked are healthy.
"""

import math
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from itertools import islice, zip_longest

from sentinel.alerts.incident import Incident
from sentinel.alerts.outcomes import Outcome
from sentinel.alerts.promise import USEFUL, Promise, Rate, of_metrics
from sentinel.detectors.api import Severity
from sentinel.ground.text import fits
from sentinel.runs.log import RunOverview
from sentinel.sources.base import EndKind


@dataclass(frozen=True, order=True)
class Kind:
    """What pages: one variant of a detector."""

    detector: str
    variant: str

    def __str__(self) -> str:
        return f"{self.detector}: {self.variant}"


Telling = Mapping[str, Sequence[Outcome]]
"""What sinks were told of a run, by incident id; an incident that nobody heard of has no outcome."""

_PARTS = 5  # of an archive, for `cross_fitted`

LENGTHS = 100, 1_000
"""Points of a metric, in the mean over the metrics of a run; longer runs are one stratum."""


@dataclass(frozen=True, order=True)
class Stratum:
    """Runs that are alike: of one framework and about as long."""

    framework: str  # empty if it is not known
    up_to: float  # points: one of `LENGTHS`, or infinity

    @classmethod
    def of(cls, seen: RunOverview) -> "Stratum":
        """The stratum of a run."""
        what = seen.understanding
        tags = len(what.unmapped) + sum(map(len, what.signals.values()))
        up_to = next((most for most in LENGTHS if seen.facts.points <= most * tags), math.inf)
        return cls(what.framework or "", up_to)

    def __str__(self) -> str:
        length = f"up to {self.up_to:,} points" if self.up_to < math.inf else f"over {LENGTHS[-1]:,} points"
        return f"{self.framework or 'unknown framework'}, {length}"


@dataclass(frozen=True)
class ArchivedRun:
    """A run of an archive: the first incident of each kind that paged in it, and what runs it is like."""

    paged: Mapping[Kind, Incident]
    stratum: Stratum
    ended_at: float | None = None  # seconds since the epoch, by the log's own clock; None if it has none


@dataclass
class Pages:
    """The runs of an archive by their names: ``healthy`` ones and ``others``."""

    healthy: dict[str, ArchivedRun] = field(default_factory=dict)
    others: dict[str, ArchivedRun] = field(default_factory=dict)

    def add(self, seen: RunOverview, told: Telling, bad: Collection[str], answers: Mapping[str, str]) -> None:
        """Add a run, and what sinks were told of its incidents.

        It is healthy unless a glob of ``bad`` fits its name, somebody called one of its incidents useful, it
        crashed or it could not be read to its end.
        """
        marked = any(fits(seen.name, glob) for glob in bad) or any(
            answers.get(incident) == USEFUL for incident in told
        )
        crashed = seen.ending is not None and seen.ending.outcome is EndKind.CRASHED
        of = self.others if marked or crashed or seen.stopped is not None else self.healthy
        of[seen.name] = ArchivedRun(_paged(told), Stratum.of(seen), seen.facts.last_time)

    def rate(self, informing: Collection[Kind] = ()) -> Rate:
        """How many healthy runs page if some kinds only inform. Raises ValueError if there is none."""
        if not self.healthy:
            raise ValueError("no run of the archive counts as healthy")
        return _rate(self.healthy.values(), informing)

    def by_stratum(self, informing: Collection[Kind] = ()) -> dict[Stratum, Rate]:
        """The same for each stratum of the healthy runs."""
        members: dict[Stratum, list[ArchivedRun]] = {}
        for run in self.healthy.values():
            members.setdefault(run.stratum, []).append(run)
        return {stratum: _rate(runs, informing) for stratum, runs in sorted(members.items())}

    def by_kind(self) -> list[tuple[Kind, Rate]]:
        """In how many healthy runs each kind pages, the most first."""
        runs = len(self.healthy)
        return [
            (kind, Rate(pages, runs)) for kind, pages in _counted(self.healthy.values(), ()).most_common()
        ]

    def of_kind(self, kind: Kind) -> dict[Stratum, Rate]:
        """How often one kind pages in each stratum of the healthy runs."""
        paging = {other for run in self.healthy.values() for other in run.paged}
        return self.by_stratum(paging - {kind})

    def halves(self, informing: Collection[Kind] = ()) -> tuple[Rate, Rate]:
        """The same for the half of the healthy runs that ended first and for the other one.

        Runs without a clock are in neither.
        """
        ends = [(run.ended_at, name) for name, run in self.healthy.items() if run.ended_at is not None]
        in_order = [self.healthy[name] for _, name in sorted(ends)]
        middle = len(in_order) // 2
        return _rate(in_order[:middle], informing), _rate(in_order[middle:], informing)


def _rate(runs: Collection[ArchivedRun], informing: Collection[Kind]) -> Rate:
    return Rate(sum(not run.paged.keys() <= {*informing} for run in runs), len(runs))


@dataclass(frozen=True)
class Move:
    """A kind that only informs from now on: in how many healthy runs it paged, and how many of the other
    runs nothing else tells of.
    """

    kind: Kind
    rate: Rate
    lost: int


def cross_fitted(budget: float, pages: Pages) -> Rate:
    """How many healthy runs page that the moves were not chosen by: each of five parts by the others.

    The moves fit the runs that they are chosen by better than the coming ones, so this is what can be
    promised. A part holds neighbours by name, since runs of one directory are alike.
    """
    names, paged = sorted(pages.healthy), 0
    for part in range(_PARTS):
        out = {*names[part * len(names) // _PARTS : (part + 1) * len(names) // _PARTS]}
        others = {name: run for name, run in pages.healthy.items() if name not in out}
        quiet = {move.kind for move in kept_within(budget, Pages(others, pages.others))} if others else ()
        paged += _rate([pages.healthy[name] for name in out], quiet).pages
    return Rate(paged, len(names))


def promised(budget: float, pages: Pages, now: float) -> Promise:
    """What a calibration at a time, in seconds since the epoch, promises."""
    rate = cross_fitted(budget, pages)
    made_at = datetime.fromtimestamp(int(now), UTC)
    return Promise(made_at=made_at, pages_per_run=budget, runs=rate.runs, pages=rate.pages)


def doubtful(
    pages: Pages, moves: Iterable[Move], answers: Collection[str], most: int = 5
) -> list[tuple[str, Incident]]:
    """The pages to look at first: of healthy runs, by name, and without those that were answered.

    The kinds that would become quiet come first, then those that page most, one page of each in turn. Of a
    kind, the page comes first that stands alone in its run: the one that nothing else speaks for.
    """
    kinds = dict.fromkeys([*(move.kind for move in moves), *(kind for kind, _ in pages.by_kind())])
    in_order = sorted(pages.healthy.items(), key=lambda item: (len(item[1].paged), item[0]))
    of_kind = (
        [
            (name, run.paged[kind])
            for name, run in in_order
            if kind in run.paged and run.paged[kind].id not in answers
        ]
        for kind in kinds
    )
    in_turn = (page for turn in zip_longest(*of_kind) for page in turn if page is not None)
    return [*islice(in_turn, most)]


def drifted(first: Rate, later: Rate) -> bool:
    """Whether the halves of an archive page so differently that chance does not explain it: their intervals
    are apart, so what one promises does not hold for the other.
    """
    return later.low > first.high or first.low > later.high


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


def _counted(runs: Iterable[ArchivedRun], informing: Collection[Kind]) -> Counter[Kind]:
    return Counter(kind for run in runs for kind in run.paged if kind not in informing)


def _alone(runs: Iterable[ArchivedRun], informing: Collection[Kind]) -> Counter[Kind]:
    """In how many runs each kind is the only one that still pages."""
    left = (run.paged.keys() - informing for run in runs)
    return Counter(kind for kinds in left if len(kinds) == 1 for kind in kinds)


def _paged(told: Telling) -> dict[Kind, Incident]:
    """What a sink was told of a run's metrics that is more than information."""
    sent = (
        outcome.incident
        for outcomes in told.values()
        for outcome in outcomes
        if outcome.decision.reason.sends
    )
    paged: dict[Kind, Incident] = {}
    for incident in sent:
        if incident.severity > Severity.INFO and of_metrics(incident.detector):
            paged.setdefault(Kind(incident.detector, incident.variant), incident)
    return paged
