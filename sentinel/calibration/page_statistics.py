"""The runs of an archive: which pages each would have sent, and how often healthy ones page.

The unit is the run: runs of one archive are alike, while the steps of one run depend on each other. Where
runs have no end it is the run-day, of which each counts once however often it pages.
"""

import math
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from functools import cached_property
from itertools import chain

import msgspec
from msgspec.structs import replace

from sentinel.calibration.calibration import USEFUL, of_metrics
from sentinel.calibration.page_rates import Rate
from sentinel.common.days import day_of, last_before
from sentinel.common.run_glob import any_fits
from sentinel.common.text import counted
from sentinel.incidents.incident import Incident
from sentinel.notifications.routing import SinkDecision
from sentinel.runs.log import RunOverview
from sentinel.sources.base import EndKind


class Kind(msgspec.Struct, frozen=True, order=True):
    """What pages: one variant of a detector."""

    detector: str
    variant: str

    def covers(self, kind: "Kind") -> bool:
        return kind == self

    def __str__(self) -> str:
        return f"{self.detector}: {self.variant}"


class Stricter(msgspec.Struct, frozen=True, order=True):
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
"""The decisions about a run by incident id; an incident that no sink was sent has none."""

LENGTHS = 100, 1_000
"""Points of a metric, in the mean over the metrics of a run; longer runs are one stratum."""


class Stratum(msgspec.Struct, frozen=True, order=True):
    """Runs that are alike: of one framework and about as long."""

    framework: str  # empty if it is not known
    up_to: float  # points: one of `LENGTHS`, or infinity

    @classmethod
    def of(cls, run: RunOverview) -> "Stratum":
        tags = run.understanding
        tag_count = len(tags.unmapped) + sum(map(len, tags.signals.values()))
        up_to = next((length for length in LENGTHS if run.metadata.points <= length * tag_count), math.inf)
        return cls(tags.framework or "", up_to)

    def __str__(self) -> str:
        length = f"up to {self.up_to:,} points" if self.up_to < math.inf else f"over {LENGTHS[-1]:,} points"
        return f"{self.framework or 'unknown framework'}, {length}"


class ArchivedRun(msgspec.Struct, frozen=True, dict=True):
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
    days: Mapping[int, frozenset[Kind]] = msgspec.field(default_factory=dict)
    stricter: "Mapping[Stricter, ArchivedRun]" = msgspec.field(default_factory=dict)

    @classmethod
    def of(
        cls, run: RunOverview, logged: Sequence[int], pages: Iterable[tuple[int | None, Incident]]
    ) -> "ArchivedRun":
        """Return a run on some days on which it logged, with its pages about metrics on these days."""
        first: dict[Kind, Incident] = {}
        days: dict[int, set[Kind]] = {}
        for day, page in pages:
            if (day is None or day in logged) and of_metrics(page.detector):
                kind = Kind(page.detector, page.variant)
                first.setdefault(kind, page)
                if day is not None:
                    days.setdefault(day, set()).add(kind)
        kinds_by_day = {day: frozenset(kinds) for day, kinds in days.items()}
        return cls(first, Stratum.of(run), run.metadata.last_time, logged, kinds_by_day)

    @property
    def kinds(self) -> frozenset[Kind]:
        """The kinds that page at all."""
        return frozenset(self.paged).union(*self.days.values())

    @cached_property
    def all_kinds(self) -> frozenset[Kind]:
        """The kinds that page before a change or after one."""
        return self.kinds.union(*(run.kinds for run in self.stricter.values()))

    def units(self, changes: Collection[Change] = (), *, daily: bool) -> list[frozenset[Kind]]:
        """Return the kinds that page after some changes in each unit that has any: the run, or a day."""
        if not (self.paged or self.days or self.stricter):  # as most runs
            return []
        units = self.by_day(changes).values() if daily else [self._kinds_after(None, changes)]
        return [kinds for kinds in units if kinds]

    def by_day(self, changes: Collection[Change] = ()) -> dict[int, frozenset[Kind]]:
        """Return the kinds that page after some changes on each day."""
        days = {*self.days}.union(*(run.days for run in self.stricter.values()))
        return {day: self._kinds_after(day, changes) for day in sorted(days)}

    def _kinds_after(self, day: int | None, changes: Collection[Change]) -> frozenset[Kind]:
        """Return the kinds that page after some changes on a day, or at all.

        A detector that is made stricter may have hidden what others found. That pages then, so it counts.
        """
        before = self.on(day)
        stricter = {change: run.on(day) for change, run in self.stricter.items() if change in changes}
        detectors = {change.detector for change in stricter}
        after = {kind for kind in before if kind.detector not in detectors}
        for change, kinds in stricter.items():
            after |= {kind for kind in kinds if change.covers(kind) or kind not in before}
        return frozenset(after.difference(changes))

    def on(self, day: int | None) -> Collection[Kind]:
        """Return the kinds that page on a day, or at all."""
        return self.paged if day is None else self.days.get(day, ())


class Pages(msgspec.Struct):
    """The runs of an archive by their names: ``healthy`` ones and ``others``. What counts are runs that page,
    or, if ``daily``, days of runs, and one run may have some that are healthy and others.
    """

    healthy: dict[str, ArchivedRun] = msgspec.field(default_factory=dict)
    others: dict[str, ArchivedRun] = msgspec.field(default_factory=dict)
    daily: bool = False

    def add(
        self, run: RunOverview, decisions: Telling, bad: Collection[str], answers: Mapping[str, str]
    ) -> None:
        """Add a run with the decisions about its incidents.

        It is healthy unless a glob of ``bad`` fits its name, somebody called one of its incidents useful, it
        crashed or it could not be read to its end. If ``daily``, such an incident takes out only the days on
        which it paged.
        """
        logged = run.metadata.extent.days()
        useful = {incident for incident in decisions if answers.get(incident) == USEFUL}
        pages = [*_pages(decisions, logged)]
        crashed = run.ending is not None and run.ending.outcome is EndKind.CRASHED
        is_bad = crashed or run.stopped is not None or any_fits(bad, run.name, run.path)
        if is_bad or (useful and not self.daily):
            self.others[run.name] = ArchivedRun.of(run, logged, pages)
            return
        bad_days = {day for day, page in pages if day is not None and page.id in useful}
        healthy_days = [day for day in logged if day not in bad_days]
        if bad_days:
            self.others[run.name] = ArchivedRun.of(run, sorted(bad_days), pages)
        if healthy_days or not bad_days:
            self.healthy[run.name] = ArchivedRun.of(run, healthy_days, pages)

    def paging(self, detector: str) -> list[str]:
        """Return the names of all runs in which a detector paged."""
        runs = [*self.healthy.items(), *self.others.items()]
        return sorted({name for name, run in runs if any(kind.detector == detector for kind in run.kinds)})

    def add_stricter(self, change: Stricter, run: RunOverview, decisions: Telling) -> None:
        """Add the decisions about a run with a stricter detector. Ignore a run that was not added before."""
        for runs in (self.healthy, self.others):
            if usual := runs.get(run.name):
                stricter = ArchivedRun.of(run, usual.logged, _pages(decisions, usual.logged))
                # Equal objects are shared, because many runs are kept at once.
                shared = {kind: usual.paged.get(kind, page) for kind, page in stricter.paged.items()}
                stricter = replace(stricter, paged=shared, stratum=usual.stratum)
                runs[run.name] = replace(usual, stricter={**usual.stricter, change: stricter})

    @property
    def left_out(self) -> str:
        """What is not healthy, for a person."""
        partly = self.others.keys() & self.healthy.keys()
        days = sum(len(self.others[name].logged) for name in partly)
        runs = counted(len(self.others) - len(partly), "other run")
        return f"{runs} and {counted(days, 'run-day')}" if days else runs

    def rate(self, changes: Collection[Change] = ()) -> Rate:
        """Return how often healthy runs page after some changes. Raises ValueError if there is none."""
        if not self.healthy:
            raise ValueError("no run of the archive counts as healthy")
        return self._rate(self.healthy.values(), changes)

    def by_stratum(self, changes: Collection[Change] = ()) -> dict[Stratum, Rate]:
        """Return how often healthy runs of each stratum page after some changes."""
        members: dict[Stratum, list[ArchivedRun]] = {}
        for run in self.healthy.values():
            members.setdefault(run.stratum, []).append(run)
        return {stratum: self._rate(runs, changes) for stratum, runs in sorted(members.items())}

    def by_kind(self) -> list[tuple[Kind, Rate]]:
        """Return how often each kind pages in healthy runs, the most first."""
        return [(kind, self.rate_of(kind)) for kind, _ in self.counted().most_common()]

    def rate_of(self, change: Change, changes: Collection[Change] = ()) -> Rate:
        """Return how often healthy runs page for what a change is about, after some changes."""
        return self.rate({*changes, *self._kinds_besides(change)})

    def of_kind(self, kind: Kind) -> dict[Stratum, Rate]:
        """Return how often healthy runs of each stratum page for a kind."""
        return self.by_stratum(self._kinds_besides(kind))

    def counted(self, changes: Collection[Change] = ()) -> Counter[Kind]:
        """Return how often each kind pages in healthy runs."""
        runs = self.healthy.values()
        return Counter(
            kind for run in runs for kinds in run.units(changes, daily=self.daily) for kind in kinds
        )

    def halves(self, changes: Collection[Change] = ()) -> tuple[Rate, Rate]:
        """Return how often the half of the healthy runs that ended first pages, and the other half.

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
        return Rate.of_days(counts) if self.daily else Rate(sum(paged for paged, _ in counts), len(counts))

    def _rate(self, runs: Iterable[ArchivedRun], changes: Collection[Change]) -> Rate:
        return self.rate_by_run(self._by_run(runs, changes))

    def _by_run(self, runs: Iterable[ArchivedRun], changes: Collection[Change]) -> list[tuple[int, int]]:
        return [
            (len(run.units(changes, daily=self.daily)), len(run.logged) if self.daily else 1) for run in runs
        ]

    def _kinds_besides(self, change: Change) -> set[Kind]:
        kinds = {kind for run in self.healthy.values() for kind in run.all_kinds}
        return {kind for kind in kinds if not change.covers(kind)}


def _pages(decisions: Telling, logged: Sequence[int]) -> Iterable[tuple[int | None, Incident]]:
    """Yield the pages that were sent, each after its day among those of the run; None without a time."""
    for decision in chain.from_iterable(decisions.values()):
        if decision.is_page:
            at = decision.incident.last_time
            day = last_before(logged, day_of(at)) if logged and at is not None else None
            yield day, decision.incident
