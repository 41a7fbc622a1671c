"""How often the runs of an archive would have paged, and what keeps that within a budget.

The unit is the run: runs of one archive are alike, while the steps of one run depend on each other. Where
runs have no end it is the run-day, of which each counts once however often it pages. What is promised holds
for runs like those of the archive, as long as most that nobody marked are healthy.
"""

import math
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime

from sentinel.alerts.incident import Incident
from sentinel.alerts.outcomes import Outcome
from sentinel.alerts.promise import USEFUL, Promise, of_metrics
from sentinel.alerts.rates import Rate
from sentinel.ground.days import day_of, last_before
from sentinel.ground.text import counted, fits
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
    """A run of an archive, or some days of it: the first incident of each kind that paged then, and what runs
    it is like.

    ``ended_at`` is in seconds since the epoch, by the log's own clock; None without one. ``logged`` are the
    days, and ``days`` has the kinds that paged on each.
    """

    paged: Mapping[Kind, Incident]
    stratum: Stratum
    ended_at: float | None = None
    logged: Sequence[int] = ()
    days: Mapping[int, frozenset[Kind]] = field(default_factory=dict)

    @classmethod
    def of(
        cls, seen: RunOverview, logged: Sequence[int], pages: Iterable[tuple[int | None, Incident]]
    ) -> "ArchivedRun":
        """A run on some days on which it logged, with its pages about metrics on these days or on none."""
        first: dict[Kind, Incident] = {}
        days: dict[int, set[Kind]] = {}
        for day, page in pages:
            if (day is None or day in logged) and of_metrics(page.detector):
                kind = Kind(page.detector, page.variant)
                first.setdefault(kind, page)
                if day is not None:
                    days.setdefault(day, set()).add(kind)
        of_day = {day: frozenset(kinds) for day, kinds in days.items()}
        return cls(first, Stratum.of(seen), seen.facts.last_time, logged, of_day)

    def units(self, *, daily: bool) -> Iterable[Collection[Kind]]:
        """The kinds that paged in each unit that has any: in the run, or on each of its days."""
        if daily:
            return self.days.values()
        return [self.paged] if self.paged else []


@dataclass
class Pages:
    """The runs of an archive by their names: ``healthy`` ones and ``others``. What counts are runs that page,
    or, if ``daily``, days of runs, and one run may have some that are healthy and others.
    """

    healthy: dict[str, ArchivedRun] = field(default_factory=dict)
    others: dict[str, ArchivedRun] = field(default_factory=dict)
    daily: bool = False

    def add(self, seen: RunOverview, told: Telling, bad: Collection[str], answers: Mapping[str, str]) -> None:
        """Add a run, and what sinks were told of its incidents.

        It is healthy unless a glob of ``bad`` fits its name, somebody called one of its incidents useful, it
        crashed or it could not be read to its end. If ``daily``, such an incident takes out only the days on
        which it paged.
        """
        logged, right = seen.facts.extent.days(), {one for one in told if answers.get(one) == USEFUL}
        pages = [*_pages(told, logged)]
        crashed = seen.ending is not None and seen.ending.outcome is EndKind.CRASHED
        went_wrong = crashed or seen.stopped is not None or any(fits(seen.name, glob) for glob in bad)
        wrong = {day for day, page in pages if day is not None and page.id in right} if self.daily else set()
        if went_wrong or (right and not self.daily):
            self.others[seen.name] = ArchivedRun.of(seen, logged, pages)
            return
        well = [day for day in logged if day not in wrong]
        if wrong:
            self.others[seen.name] = ArchivedRun.of(seen, sorted(wrong), pages)
        if well or not wrong:
            self.healthy[seen.name] = ArchivedRun.of(seen, well, pages)

    @property
    def left_out(self) -> str:
        """What is not healthy, for a person."""
        parts = self.others.keys() & self.healthy.keys()
        days = sum(len(self.others[name].logged) for name in parts)
        runs = counted(len(self.others) - len(parts), "other run")
        return f"{runs} and {counted(days, 'run-day')}" if days else runs

    def rate(self, informing: Collection[Kind] = ()) -> Rate:
        """How often healthy runs page if some kinds only inform. Raises ValueError if there is none."""
        if not self.healthy:
            raise ValueError("no run of the archive counts as healthy")
        return self._rate(self.healthy.values(), informing)

    def by_stratum(self, informing: Collection[Kind] = ()) -> dict[Stratum, Rate]:
        """The same for each stratum of the healthy runs."""
        members: dict[Stratum, list[ArchivedRun]] = {}
        for run in self.healthy.values():
            members.setdefault(run.stratum, []).append(run)
        return {stratum: self._rate(runs, informing) for stratum, runs in sorted(members.items())}

    def by_kind(self) -> list[tuple[Kind, Rate]]:
        """How often each kind pages in healthy runs, the most first."""
        return [(kind, self.rate_of(kind)) for kind, _ in self.counted().most_common()]

    def rate_of(self, kind: Kind) -> Rate:
        """How often one kind pages in healthy runs."""
        return self.rate(self._others(kind))

    def of_kind(self, kind: Kind) -> dict[Stratum, Rate]:
        """The same in each stratum of the healthy runs."""
        return self.by_stratum(self._others(kind))

    def counted(self, informing: Collection[Kind] = ()) -> Counter[Kind]:
        """How often each kind pages in healthy runs."""
        units = self._units(self.healthy.values())
        return Counter(kind for kinds in units for kind in kinds if kind not in informing)

    def alone(self, informing: Collection[Kind]) -> Counter[Kind]:
        """How often each kind is the only one that still pages in healthy runs."""
        return _alone(self._units(self.healthy.values()), informing)

    def halves(self, informing: Collection[Kind] = ()) -> tuple[Rate, Rate]:
        """The same for the half of the healthy runs that ended first and for the other one.

        Runs without a clock are in neither.
        """
        ends = [(run.ended_at, name) for name, run in self.healthy.items() if run.ended_at is not None]
        in_order = [self.healthy[name] for _, name in sorted(ends)]
        middle = len(in_order) // 2
        return self._rate(in_order[:middle], informing), self._rate(in_order[middle:], informing)

    def by_run(self, informing: Collection[Kind] = ()) -> list[tuple[int, int]]:
        """How many units of each healthy run page if some kinds only inform, and how many there are."""
        return self._by_run(self.healthy.values(), informing)

    def rate_by_run(self, counts: Collection[tuple[int, int]]) -> Rate:
        """Such counts as a rate."""
        return Rate.of_days(counts) if self.daily else Rate(sum(paged for paged, _ in counts), len(counts))

    def _rate(self, runs: Iterable[ArchivedRun], informing: Collection[Kind]) -> Rate:
        return self.rate_by_run(self._by_run(runs, informing))

    def _by_run(self, runs: Iterable[ArchivedRun], informing: Collection[Kind]) -> list[tuple[int, int]]:
        quiet = {*informing}
        return [
            (
                sum(not quiet.issuperset(kinds) for kinds in run.units(daily=self.daily)),
                len(run.logged) if self.daily else 1,
            )
            for run in runs
        ]

    def _others(self, kind: Kind) -> set[Kind]:
        return {*self.counted()} - {kind}

    def _units(self, runs: Iterable[ArchivedRun]) -> Iterable[Collection[Kind]]:
        return (kinds for run in runs for kinds in run.units(daily=self.daily))


@dataclass(frozen=True)
class Move:
    """A kind that only informs from now on: how often it paged in healthy runs, and how many of the other
    runs nothing else tells of.
    """

    kind: Kind
    rate: Rate
    lost: int


def cross_fitted(budget: float, pages: Pages) -> Rate:
    """How often healthy runs page that the moves were not chosen by: each of five parts by the others.

    The moves fit the runs that they are chosen by better than the coming ones, so this is what can be
    promised. A part holds neighbours by name, since runs of one directory are alike.
    """
    names, counts = sorted(pages.healthy), list[tuple[int, int]]()
    for part in range(_PARTS):
        out = {*names[part * len(names) // _PARTS : (part + 1) * len(names) // _PARTS]}
        others = {name: run for name, run in pages.healthy.items() if name not in out}
        quiet = {move.kind for move in kept_within(budget, replace(pages, healthy=others))} if others else ()
        left_out = {name: pages.healthy[name] for name in out}
        counts += replace(pages, healthy=left_out).by_run(quiet)
    return pages.rate_by_run(counts)


def promised(budget: float, pages: Pages, now: float) -> Promise:
    """What a calibration at a time, in seconds since the epoch, promises. Raises ValueError if the unit is
    the run-day and no run has a clock.

    What became quiet tells as well how days of these runs depend, and the few pages that are left hardly do.
    """
    quiet = {move.kind for move in kept_within(budget, pages)}
    rate, variants = cross_fitted(budget, pages), sorted(pages.counted(quiet).items())
    least = max(rate.design_effect, pages.rate().design_effect)
    effects = {str(kind): max(least, pages.rate_of(kind).design_effect) for kind, _ in variants}
    return Promise(
        made_at=datetime.fromtimestamp(int(now), UTC),
        pages_per_run=None if pages.daily else budget,
        pages_per_run_day=budget if pages.daily else None,
        runs=len(pages.healthy),
        run_days=sum(len(run.logged) for run in pages.healthy.values()),
        pages=rate.pages,
        design_effect=least,
        variants={str(kind): count for kind, count in variants},
        design_effects=effects if pages.daily else {},
    )


def drifted(first: Rate, later: Rate) -> bool:
    """Whether the halves of an archive page so differently that chance does not explain it: their intervals
    are apart, so what one promises does not hold for the other.
    """
    return later.low > first.high or first.low > later.high


def kept_within(budget: float, pages: Pages) -> list[Move]:
    """The kinds that have to become quiet so that healthy runs page no more often than the budget allows.

    Each time that one goes which takes the fewest faults with it for each page that it saves.
    """
    moves: list[Move] = []
    informing: set[Kind] = set()
    while (rate := pages.rate(informing)).pages > budget * rate.units:
        healthy, alone = pages.counted(informing), pages.alone(informing)
        lost = _alone((run.paged for run in pages.others.values()), informing)
        kind = min(sorted(healthy), key=lambda kind: (lost[kind] / (alone[kind] or 0.5), -healthy[kind]))
        informing.add(kind)
        moves.append(Move(kind, pages.rate_of(kind), lost[kind]))
    return moves


def _alone(units: Iterable[Collection[Kind]], informing: Collection[Kind]) -> Counter[Kind]:
    left = ({*kinds}.difference(informing) for kinds in units)
    return Counter(kind for kinds in left if len(kinds) == 1 for kind in kinds)


def _pages(told: Telling, logged: Sequence[int]) -> Iterable[tuple[int | None, Incident]]:
    """What sinks were told that is a page, with its day among those on which the run logged; None without a
    time.
    """
    for outcomes in told.values():
        for outcome in outcomes:
            if outcome.is_page:
                at = outcome.incident.last_time
                yield last_before(logged, day_of(at)) if logged and at is not None else None, outcome.incident
