"""What keeps the pages of healthy runs within a budget, on the runs of an archive.

Two things make a detector page less: one of its variants only informs, or the detector is stricter. The
strictest factor with which a run still pages is its score, and the factor that a budget needs is a quantile
of the scores of the healthy runs. So this is split conformal prediction over each run's largest score, in
steps (Vovk, Gammerman and Shafer, "Algorithmic Learning in a Random World", 2005). Several detectors share
the budget, and the same runs choose among all their factors, so the quantile alone promises nothing. The
factors of one detector could be tested one after the other from the strictest on, without allowing for their
number ("Learn then test", Angelopoulos, Bates, Candes, Jordan and Lei, 2021); those of several have no such
order. Here the promise rests on runs that chose nothing (see `cross_fitted`), so there is one rate, and the
interval of Clopper and Pearson bounds it. It holds for runs like those of the archive, as long as most that
nobody marked are healthy.
"""

import math
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import cache, partial

from sentinel.calibration.calibration import Calibration
from sentinel.calibration.page_rates import Rate
from sentinel.calibration.page_statistics import ArchivedRun, Change, Kind, Pages, Stricter, Telling
from sentinel.calibration.public_base_rate import faults_lost
from sentinel.detectors.discovery import all_detectors
from sentinel.detectors.strictness import FACTORS
from sentinel.runs.log import RunOverview

_PARTS = 5  # of an archive, for `cross_fitted`
_JUDGED_ANEW = 1000  # runs for each detector, at least, which take a minute

Judge = Callable[[Stricter, Sequence[str]], Iterable[tuple[RunOverview, Telling]]]
"""Judges the runs of these names once more, with a detector stricter."""


@dataclass(frozen=True)
class Move:
    """A change, how often healthy runs paged before and do now for what it is about, and how many of the
    other runs nothing else tells of.
    """

    change: Change
    rate: Rate
    now: Rate
    lost: int


def judge_stricter(pages: Pages, judge: Judge) -> None:
    """Judge once more, with each detector stricter, the runs in which it paged. It pages in no others.

    If very many paged, an even choice of them is judged, in all half as often as the archive has runs, so
    that this takes no longer than the archive did. The others count as if they paged still.
    """
    paging = {name: pages.paging(name) for name, detector in all_detectors().items() if detector.stricter}
    paging = {name: runs for name, runs in paging.items() if runs}
    for name, runs in paging.items():
        most = max(_JUDGED_ANEW, len(pages.healthy) // (2 * len(FACTORS) * len(paging)))
        chosen = [runs[at * len(runs) // most] for at in range(most)] if len(runs) > most else runs
        for change in (Stricter(name, factor) for factor in FACTORS):
            for seen, told in judge(change, chosen):
                pages.add_stricter(change, seen, told)


def cross_fitted(budget: float, pages: Pages) -> Rate:
    """Return how often healthy runs page that the moves were not chosen by: each of five parts by the others.

    The moves fit the runs that they are chosen by better than the coming ones, so this is what can be
    promised. A part holds neighbours by name, since runs of one directory are alike.
    """
    names = sorted(pages.healthy)
    counts = list[tuple[int, int]]()
    for part in range(_PARTS):
        out = {*names[part * len(names) // _PARTS : (part + 1) * len(names) // _PARTS]}
        others = {name: run for name, run in pages.healthy.items() if name not in out}
        changes = changes_of(kept_within(budget, replace(pages, healthy=others))) if others else ()
        left_out = {name: pages.healthy[name] for name in out}
        counts += replace(pages, healthy=left_out).by_run(changes)
    return pages.rate_by_run(counts)


def promised(budget: float, pages: Pages, now: float) -> Calibration:
    """Return what a calibration at a time, in seconds since the epoch, promises. Raises ValueError if the
    unit is the run-day and no run has a clock.

    What pages no more tells as well how days of these runs depend, and the few pages that are left hardly do.
    """
    changes = changes_of(kept_within(budget, pages))
    rate = cross_fitted(budget, pages)
    variants = sorted(pages.counted(changes).items())
    least = max(rate.design_effect, pages.rate().design_effect)
    effects = {str(kind): max(least, pages.rate_of(kind).design_effect) for kind, _ in variants}
    return Calibration(
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
    """Return whether the halves of an archive page so differently that chance does not explain it: their
    intervals are apart, so what one promises does not hold for the other.
    """
    return later.low > first.high or first.low > later.high


def changes_of(moves: Iterable[Move]) -> set[Change]:
    """Return what the moves change."""
    return {move.change for move in moves}


def kept_within(budget: float, pages: Pages) -> list[Move]:
    """Return the changes after which healthy runs page no more often than the budget allows.

    Each time that one comes which takes the fewest faults with it for each page that it saves: first of the
    other runs of the archive, then of public runs. What turns out to be needless is taken back.
    """
    taken: list[Change] = []
    concerned = cache(partial(_concerned, pages))
    while not is_kept(budget, pages, taken):
        prices = {change: _price(concerned(change), taken, change) for change in _choices(pages, taken)}
        taken = _with(taken, min(prices, key=prices.__getitem__))
    while (less := next((some for some in _milder(taken) if is_kept(budget, pages, some)), None)) is not None:
        taken = less
    return [_move(pages, taken, change) for change in taken]


def _concerned(pages: Pages, change: Change) -> Pages:
    """Return the runs that a change can concern. Most page for other kinds or not at all."""

    def only(runs: Mapping[str, ArchivedRun]) -> dict[str, ArchivedRun]:
        return {name: run for name, run in runs.items() if any(map(change.covers, run.all_kinds))}

    return replace(pages, healthy=only(pages.healthy), others=only(pages.others))


def is_kept(budget: float, pages: Pages, changes: Collection[Change] = ()) -> bool:
    """Return whether healthy runs page no more often after some changes than the budget allows."""
    rate = pages.rate(changes)
    return rate.pages <= budget * rate.units


def _with(taken: Collection[Change], change: Change) -> list[Change]:
    """Return the changes and one more, which replaces a milder one of its detector."""
    return [one for one in taken if not isinstance(change, Stricter) or one not in _all(change)] + [change]


def _all(change: Stricter) -> list[Stricter]:
    return [Stricter(change.detector, factor) for factor in FACTORS]


def _milder(taken: Sequence[Change]) -> Iterator[list[Change]]:
    """Yield the same without one of the changes, or with a smaller factor; first without the one that came
    last.
    """
    for change in reversed(taken):
        others = [one for one in taken if one != change]
        yield others
        if isinstance(change, Stricter):
            yield from ([*others, one] for one in _all(change) if one.factor < change.factor)


def _choices(pages: Pages, taken: Collection[Change]) -> list[Change]:
    """Return what may be changed next: kinds that still page, and detectors that can become stricter yet."""
    kinds = sorted(pages.counted(taken))
    judged = {change for run in pages.healthy.values() for change in run.stricter}
    factors = {change.detector: change.factor for change in taken if isinstance(change, Stricter)}
    return [*kinds, *sorted(one for one in judged if one.factor > factors.get(one.detector, 1.0))]


@dataclass(frozen=True)
class _Paging:
    """What pages after some changes: healthy units, their kinds counted one by one, and other runs."""

    units: int
    kinds: int
    others: int

    @classmethod
    def of(cls, pages: Pages, changes: Collection[Change]) -> "_Paging":
        healthy = [kinds for run in pages.healthy.values() for kinds in run.units(changes, daily=pages.daily)]
        others = [kinds for run in pages.others.values() for kinds in run.units(changes, daily=False)]
        return cls(len(healthy), sum(map(len, healthy)), len(others))


def _price(concerned: Pages, taken: Collection[Change], change: Change) -> tuple[float, ...]:
    """Return what one more change costs: faults of the archive and public ones for each page that it saves.
    Of equal ones it is better that the detector still pages, and that more is saved. What saves nothing has
    no price.
    """
    before = _Paging.of(concerned, taken)
    after = _Paging.of(concerned, _with(taken, change))
    if after.kinds >= before.kinds:
        return (math.inf,)
    saved = max(before.units - after.units, 0.5)
    lost = (before.others - after.others) / saved
    return lost, faults_lost(change) / saved, isinstance(change, Kind), after.kinds - before.kinds


def _move(pages: Pages, taken: Sequence[Change], change: Change) -> Move:
    without = [one for one in taken if one != change]
    lost = _Paging.of(pages, without).others - _Paging.of(pages, taken).others
    return Move(change, pages.rate_of(change), pages.rate_of(change, taken), lost)
