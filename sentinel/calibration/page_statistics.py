"""The runs of an archive: which pages each would have sent, and how often healthy ones page.

The unit is the run: runs of one archive are alike, while the steps of one run depend on each other. Where
runs have no end it is the run-day, of which each counts once however often it pages.
"""

import math
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

from sentinel.calibration.calibration import USEFUL, of_metrics
from sentinel.calibration.page_rates import Rate
from sentinel.common.days import day_of, last_before
from sentinel.common.text import counted, fits
from sentinel.incidents.incident import Incident
from sentinel.notifications.routing import SinkDecision
from sentinel.runs.log import RunOverview
from sentinel.sources.base import EndKind


@dataclass(frozen=True, order=True)
class Kind:
    """What pages: one variant of a detector."""

    detector: str
    variant: str

    def covers(self, kind: "Kind") -> bool:
        """Return whether it is that kind."""
        return kind == self

    def __str__(self) -> str:
        return f"{self.detector}: {self.variant}"


@dataclass(frozen=True, order=True)
class Stricter:
    """A detector that is stricter by a factor; see `sentinel.detectors.strictness`."""

    detector: str
    factor: float

    def covers(self, kind: Kind) -> bool:
        """Return whether it changes when that kind pages."""
        return kind.detector == self.detector

    @property
    def how(self) -> str:
        """The factor in words."""
        return f"{self.factor:g} times as strict"

    def __str__(self) -> str:
        return f"{self.detector}: {self.how}"


Change = Kind | Stricter
"""What a calibration changes: a kind only informs, or a detector is stricter. A detector has one factor."""

Telling = Mapping[str, Sequence[SinkDecision]]
"""What sinks were told of a run, by incident id; an incident that nobody heard of has no outcome."""

LENGTHS = 100, 1_000
"""Points of a metric, in the mean over the metrics of a run; longer runs are one stratum."""


@dataclass(frozen=True, order=True)
class Stratum:
    """Runs that are alike: of one framework and about as long."""

    framework: str  # empty if it is not known
    up_to: float  # points: one of `LENGTHS`, or infinity

    @classmethod
    def of(cls, seen: RunOverview) -> "Stratum":
        """Return the stratum of a run."""
        what = seen.understanding
        tags = len(what.unmapped) + sum(map(len, what.signals.values()))
        up_to = next((most for most in LENGTHS if seen.metadata.points <= most * tags), math.inf)
        return cls(what.framework or "", up_to)

    def __str__(self) -> str:
        length = f"up to {self.up_to:,} points" if self.up_to < math.inf else f"over {LENGTHS[-1]:,} points"
        return f"{self.framework or 'unknown framework'}, {length}"


@dataclass(frozen=True)
class ArchivedRun:
    """A run of an archive, or some days of it: the first incident of each kind that paged then, and what runs
    it is like.

    ``ended_at`` is in seconds since the epoch, by the log's own clock; None without one. ``logged`` are the
    days, and ``days`` has the kinds that paged on each. ``stricter`` is the run as it was judged with one
    detector stricter, of the detectors that paged in it.
    """

    paged: Mapping[Kind, Incident]
    stratum: Stratum
    ended_at: float | None = None
    logged: Sequence[int] = ()
    days: Mapping[int, frozenset[Kind]] = field(default_factory=dict)
    stricter: "Mapping[Stricter, ArchivedRun]" = field(default_factory=dict)

    @classmethod
    def of(
        cls, seen: RunOverview, logged: Sequence[int], pages: Iterable[tuple[int | None, Incident]]
    ) -> "ArchivedRun":
        """Return a run on some days on which it logged, with its pages about metrics on these days or on
        none.
        """
        first: dict[Kind, Incident] = {}
        days: dict[int, set[Kind]] = {}
        for day, page in pages:
            if (day is None or day in logged) and of_metrics(page.detector):
                kind = Kind(page.detector, page.variant)
                first.setdefault(kind, page)
                if day is not None:
                    days.setdefault(day, set()).add(kind)
        of_day = {day: frozenset(kinds) for day, kinds in days.items()}
        return cls(first, Stratum.of(seen), seen.metadata.last_time, logged, of_day)

    @property
    def kinds(self) -> frozenset[Kind]:
        """The kinds that page at all."""
        return frozenset(self.paged).union(*self.days.values())

    @cached_property
    def all_kinds(self) -> frozenset[Kind]:
        """The kinds that page before a change or after one."""
        return self.kinds.union(*(run.kinds for run in self.stricter.values()))

    def units(self, changes: Collection[Change] = (), *, daily: bool) -> list[frozenset[Kind]]:
        """Return the kinds that page after some changes in each unit that has any: in the run, or on each of
        its days.
        """
        if not (self.paged or self.days or self.stricter):  # as most runs
            return []
        left = self.by_day(changes).values() if daily else [self._left(None, changes)]
        return [kinds for kinds in left if kinds]

    def by_day(self, changes: Collection[Change] = ()) -> dict[int, frozenset[Kind]]:
        """Return the kinds that page after some changes on each day."""
        days = {*self.days}.union(*(run.days for run in self.stricter.values()))
        return {day: self._left(day, changes) for day in sorted(days)}

    def _left(self, day: int | None, changes: Collection[Change]) -> frozenset[Kind]:
        """Return the kinds that page after some changes on a day, or at all.

        A detector that is made stricter may have hidden what others found. That pages then, so it counts.
        """
        usual = self.on(day)
        judged = {change: run.on(day) for change, run in self.stricter.items() if change in changes}
        moved = {change.detector for change in judged}
        left = {kind for kind in usual if kind.detector not in moved}
        for change, kinds in judged.items():
            left |= {kind for kind in kinds if change.covers(kind) or kind not in usual}
        return frozenset(left.difference(changes))

    def on(self, day: int | None) -> Collection[Kind]:
        """Return the kinds that page on a day, or at all."""
        return self.paged if day is None else self.days.get(day, ())


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
        logged = seen.metadata.extent.days()
        right = {one for one in told if answers.get(one) == USEFUL}
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

    def paging(self, detector: str) -> list[str]:
        """Return the names of all runs in which a detector paged."""
        runs = [*self.healthy.items(), *self.others.items()]
        return sorted({name for name, run in runs if any(kind.detector == detector for kind in run.kinds)})

    def add_stricter(self, change: Stricter, seen: RunOverview, told: Telling) -> None:
        """Add what sinks were told of a run, which is there, once a detector is stricter."""
        for runs in (self.healthy, self.others):
            if run := runs.get(seen.name):
                judged = ArchivedRun.of(seen, run.logged, _pages(told, run.logged))
                shared = {kind: run.paged.get(kind, page) for kind, page in judged.paged.items()}
                judged = replace(judged, paged=shared, stratum=run.stratum)  # many are kept at once
                runs[seen.name] = replace(run, stricter={**run.stricter, change: judged})

    @property
    def left_out(self) -> str:
        """What is not healthy, for a person."""
        parts = self.others.keys() & self.healthy.keys()
        days = sum(len(self.others[name].logged) for name in parts)
        runs = counted(len(self.others) - len(parts), "other run")
        return f"{runs} and {counted(days, 'run-day')}" if days else runs

    def rate(self, changes: Collection[Change] = ()) -> Rate:
        """Return how often healthy runs page after some changes. Raises ValueError if there is none."""
        if not self.healthy:
            raise ValueError("no run of the archive counts as healthy")
        return self._rate(self.healthy.values(), changes)

    def by_stratum(self, changes: Collection[Change] = ()) -> dict[Stratum, Rate]:
        """Return the same for each stratum of the healthy runs."""
        members: dict[Stratum, list[ArchivedRun]] = {}
        for run in self.healthy.values():
            members.setdefault(run.stratum, []).append(run)
        return {stratum: self._rate(runs, changes) for stratum, runs in sorted(members.items())}

    def by_kind(self) -> list[tuple[Kind, Rate]]:
        """Return how often each kind pages in healthy runs, the most first."""
        return [(kind, self.rate_of(kind)) for kind, _ in self.counted().most_common()]

    def rate_of(self, what: Change, changes: Collection[Change] = ()) -> Rate:
        """Return how often pages in healthy runs what a change is about, after some changes."""
        return self.rate({*changes, *self._beside(what)})

    def of_kind(self, kind: Kind) -> dict[Stratum, Rate]:
        """Return the same of a kind in each stratum of the healthy runs."""
        return self.by_stratum(self._beside(kind))

    def counted(self, changes: Collection[Change] = ()) -> Counter[Kind]:
        """Return how often each kind pages in healthy runs."""
        runs = self.healthy.values()
        return Counter(
            kind for run in runs for kinds in run.units(changes, daily=self.daily) for kind in kinds
        )

    def halves(self, changes: Collection[Change] = ()) -> tuple[Rate, Rate]:
        """Return the same for the half of the healthy runs that ended first and for the other one.

        Runs without a clock are in neither.
        """
        ends = [(run.ended_at, name) for name, run in self.healthy.items() if run.ended_at is not None]
        in_order = [self.healthy[name] for _, name in sorted(ends)]
        middle = len(in_order) // 2
        return self._rate(in_order[:middle], changes), self._rate(in_order[middle:], changes)

    def by_run(self, changes: Collection[Change] = ()) -> list[tuple[int, int]]:
        """Return how many units of each healthy run page after some changes, and how many there are."""
        return self._by_run(self.healthy.values(), changes)

    def rate_by_run(self, counts: Collection[tuple[int, int]]) -> Rate:
        """Such counts as a rate."""
        return Rate.of_days(counts) if self.daily else Rate(sum(paged for paged, _ in counts), len(counts))

    def _rate(self, runs: Iterable[ArchivedRun], changes: Collection[Change]) -> Rate:
        return self.rate_by_run(self._by_run(runs, changes))

    def _by_run(self, runs: Iterable[ArchivedRun], changes: Collection[Change]) -> list[tuple[int, int]]:
        return [
            (len(run.units(changes, daily=self.daily)), len(run.logged) if self.daily else 1) for run in runs
        ]

    def _beside(self, what: Change) -> set[Kind]:
        kinds = {kind for run in self.healthy.values() for kind in run.all_kinds}
        return {kind for kind in kinds if not what.covers(kind)}


def _pages(told: Telling, logged: Sequence[int]) -> Iterable[tuple[int | None, Incident]]:
    """Return what sinks were told that is a page, with its day among those on which the run logged; None
    without a time.
    """
    for outcomes in told.values():
        for outcome in outcomes:
            if outcome.is_page:
                at = outcome.incident.last_time
                yield last_before(logged, day_of(at)) if logged and at is not None else None, outcome.incident
