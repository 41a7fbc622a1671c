"""Chooses changes that keep the pages of healthy runs within a budget, on the runs of an archive.

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
from datetime import UTC, datetime
from functools import cache, partial

import msgspec
from msgspec.structs import replace

from sentinel.calibration.calibration import Calibration
from sentinel.calibration.page_rates import Rate
from sentinel.calibration.page_statistics import ArchivedRun, Change, Kind, Pages, Stricter, Telling
from sentinel.calibration.public_base_rate import faults_lost
from sentinel.detectors.discovery import all_detectors
from sentinel.detectors.strictness import FACTORS
from sentinel.runs.log import RunOverview

_FOLDS_OF_RUNS = 5  # of an archive, for `cross_fitted`
_MIN_RUNS_JUDGED_AGAIN = 1000  # for each detector; they take a minute

Judge = Callable[[Stricter, Sequence[str]], Iterable[tuple[RunOverview, Telling]]]
"""Judges the runs of these names once more, with a detector stricter."""


class Move(msgspec.Struct, frozen=True):
    """A change, and what it does."""

    change: Change
    rate: Rate  # at which healthy runs paged before, for what the change is about
    now: Rate  # at which they do after all changes
    lost: int  # other runs for which nothing else pages


def judge_stricter(pages: Pages, judge: Judge) -> None:
    """Judge once more, with each detector stricter, the runs in which it paged. It pages in no others.

    If very many paged, an even sample of them is judged, in all half as many as the archive has runs, so that
    this takes no longer than the archive did. The others count as if they still paged.
    """
    paging = {name: pages.paging(name) for name, detector in all_detectors().items() if detector.stricter}
    paging = {name: runs for name, runs in paging.items() if runs}
    for name, runs in paging.items():
        limit = max(_MIN_RUNS_JUDGED_AGAIN, len(pages.healthy) // (2 * len(FACTORS) * len(paging)))
        sample = [runs[i * len(runs) // limit] for i in range(limit)] if len(runs) > limit else runs
        for change in (Stricter(name, factor) for factor in FACTORS):
            for run, decisions in judge(change, sample):
                pages.add_stricter(change, run, decisions)


def cross_fitted(budget: float, pages: Pages) -> Rate:
    """Return how often healthy runs page by which the changes were not chosen: those of each of five folds,
    with changes chosen by the other folds.

    The changes fit the runs by which they are chosen better than later runs, so this is what can be promised.
    A fold holds neighbours by name, since runs of one directory are alike.
    """
    names = sorted(pages.healthy)
    counts = list[tuple[int, int]]()
    for fold in range(_FOLDS_OF_RUNS):
        fold_names = {*names[fold * len(names) // _FOLDS_OF_RUNS : (fold + 1) * len(names) // _FOLDS_OF_RUNS]}
        other_folds = {name: run for name, run in pages.healthy.items() if name not in fold_names}
        changes = changes_of(kept_within(budget, replace(pages, healthy=other_folds))) if other_folds else ()
        runs = {name: pages.healthy[name] for name in fold_names}
        counts += replace(pages, healthy=runs).by_run(changes)
    return pages.rate_by_run(counts)


def promised(budget: float, pages: Pages, now: float) -> Calibration:
    """Return what a calibration at a time, in seconds since the epoch, promises. Raises ValueError if the
    unit is the run-day and no run has a clock.

    How days of these runs depend on each other is taken from all pages, because the few that remain hardly
    show it.
    """
    changes = changes_of(kept_within(budget, pages))
    rate = cross_fitted(budget, pages)
    variants = sorted(pages.counted(changes).items())
    design_effect = max(rate.design_effect, pages.rate().design_effect)
    effects = {str(kind): max(design_effect, pages.rate_of(kind).design_effect) for kind, _ in variants}
    return Calibration(
        made_at=datetime.fromtimestamp(int(now), UTC),
        pages_per_run=None if pages.daily else budget,
        pages_per_run_day=budget if pages.daily else None,
        runs=len(pages.healthy),
        run_days=sum(len(run.logged) for run in pages.healthy.values()),
        pages=rate.pages,
        design_effect=design_effect,
        variants={str(kind): count for kind, count in variants},
        design_effects=effects if pages.daily else {},
    )


def drifted(first: Rate, later: Rate) -> bool:
    """Return whether the halves of an archive page so differently that chance does not explain it: their
    intervals are apart, so what one promises does not hold for the other.
    """
    return later.low > first.high or first.low > later.high


def changes_of(moves: Iterable[Move]) -> set[Change]:
    return {move.change for move in moves}


def kept_within(budget: float, pages: Pages) -> list[Move]:
    """Return the changes after which healthy runs page no more often than the budget allows.

    Each step adds the change that loses the fewest faults for each page that it saves: first of the other
    runs of the archive, then of public runs. At the end needless changes are removed.
    """
    changes: list[Change] = []
    concerned = cache(partial(_concerned, pages))
    while not is_kept(budget, pages, changes):
        prices = {change: _price(concerned(change), changes, change) for change in _choices(pages, changes)}
        changes = _with(changes, min(prices, key=prices.__getitem__))
    milder: list[Change] | None = changes
    while milder is not None:
        changes = milder
        milder = next((fewer for fewer in _milder(changes) if is_kept(budget, pages, fewer)), None)
    return [_move(pages, changes, change) for change in changes]


def _concerned(pages: Pages, change: Change) -> Pages:
    """Return the runs that a change can concern. Most page for other kinds or not at all."""

    def select(runs: Mapping[str, ArchivedRun]) -> dict[str, ArchivedRun]:
        return {name: run for name, run in runs.items() if any(map(change.covers, run.all_kinds))}

    return replace(pages, healthy=select(pages.healthy), others=select(pages.others))


def is_kept(budget: float, pages: Pages, changes: Collection[Change] = ()) -> bool:
    """Return whether healthy runs page no more often after some changes than the budget allows."""
    rate = pages.rate(changes)
    return rate.pages <= budget * rate.units


def _with(changes: Collection[Change], change: Change) -> list[Change]:
    """Return the changes and one more, which replaces a milder one of its detector."""
    replaced = _all_factors(change) if isinstance(change, Stricter) else []
    return [other for other in changes if other not in replaced] + [change]


def _all_factors(change: Stricter) -> list[Stricter]:
    return [Stricter(change.detector, factor) for factor in FACTORS]


def _milder(changes: Sequence[Change]) -> Iterator[list[Change]]:
    """Yield the changes without one of them, or with a smaller factor; first without the last added."""
    for change in reversed(changes):
        other_changes = [other for other in changes if other != change]
        yield other_changes
        if isinstance(change, Stricter):
            for milder in _all_factors(change):
                if milder.factor < change.factor:
                    yield [*other_changes, milder]


def _choices(pages: Pages, changes: Collection[Change]) -> list[Change]:
    """Return what may be changed next: kinds that still page, and detectors that can become stricter."""
    kinds = sorted(pages.counted(changes))
    stricter = {change for run in pages.healthy.values() for change in run.stricter}
    factors = {change.detector: change.factor for change in changes if isinstance(change, Stricter)}
    return [
        *kinds,
        *sorted(change for change in stricter if change.factor > factors.get(change.detector, 1.0)),
    ]


class _Paging(msgspec.Struct, frozen=True):
    """The numbers of what pages after some changes."""

    units: int  # healthy runs or days
    kinds: int  # in them, counted one by one
    others: int  # runs that are not healthy

    @classmethod
    def after(cls, pages: Pages, changes: Collection[Change]) -> "_Paging":
        healthy = [kinds for run in pages.healthy.values() for kinds in run.units(changes, daily=pages.daily)]
        others = [kinds for run in pages.others.values() for kinds in run.units(changes, daily=False)]
        return cls(len(healthy), sum(map(len, healthy)), len(others))


def _price(concerned: Pages, changes: Collection[Change], change: Change) -> tuple[float, ...]:
    """Return what one more change costs: faults of the archive and public ones for each page that it saves.
    Among equal prices, a detector that still pages comes first, then the one that saves more. A change that
    saves nothing has an infinite price.
    """
    before = _Paging.after(concerned, changes)
    after = _Paging.after(concerned, _with(changes, change))
    if after.kinds >= before.kinds:
        return (math.inf,)
    saved = max(before.units - after.units, 0.5)
    lost = (before.others - after.others) / saved
    return lost, faults_lost(change) / saved, isinstance(change, Kind), after.kinds - before.kinds


def _move(pages: Pages, changes: Sequence[Change], change: Change) -> Move:
    without = [other for other in changes if other != change]
    lost = _Paging.after(pages, without).others - _Paging.after(pages, changes).others
    return Move(change, pages.rate_of(change), pages.rate_of(change, changes), lost)
