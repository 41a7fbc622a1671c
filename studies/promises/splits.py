"""What is promised on one half of an archive, and what comes of it on the other."""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, replace
from statistics import mean

import numpy as np

from sentinel.calibration.calibration import FALSE, Calibration, PageSent
from sentinel.calibration.check import Ledger
from sentinel.calibration.page_rates import Rate
from sentinel.calibration.page_statistics import ArchivedRun, Change, Kind, Pages, Stricter
from sentinel.calibration.thresholds import changes_of, kept_within, promised
from sentinel.common.days import DAY_SECONDS, Extent
from sentinel.detectors.strictness import FACTORS

BUDGETS = 0.001, 0.01, 0.05
SPLITS = 20


@dataclass(frozen=True)
class Kept:
    """A promise of one half beside what comes of it in the other half, each page of which is answered.

    ``changes`` are what the calibration changed.
    """

    promise: Calibration
    changes: Collection[Change]
    realised: Rate
    noticed: int | None = None  # after how many runs, or days of them, a watch says to calibrate again

    @property
    def inside(self) -> bool:
        """Whether the other half pages no more often than was promised."""
        return self.realised.share <= self.promise.highest


def kept(budget: float, half: Pages, other: Pages) -> Kept:
    """Calibrate a half, look what comes of it in the other one, and watch that one."""
    found = _calibrated(budget, half, other)
    return replace(found, noticed=noticed(found.promise, other, found.changes))


def _calibrated(budget: float, half: Pages, other: Pages) -> Kept:
    changes = changes_of(kept_within(budget, half))
    return Kept(promised(budget, half, 0.0), changes, other.rate(changes))


def noticed(promise: Calibration, pages: Pages, changes: Collection[Change]) -> int | None:
    """After how many healthy runs, or days of them, a watch that looks each day says to calibrate again."""
    timed = {name: run for name, run in pages.healthy.items() if run.logged}
    sent = [
        PageSent(name, f"{kind} of {name}", kind.detector, kind.variant, day * DAY_SECONDS, FALSE)
        for name, run in timed.items()
        for day, kinds in run.by_day(changes).items()
        for kind in kinds
    ]
    for day in sorted({day for run in timed.values() for day in run.logged}):
        midnight = (day + 1) * DAY_SECONDS
        until = {
            name: Extent(run.logged[0] * DAY_SECONDS, midnight, [(on, on) for on in run.logged if on <= day])
            for name, run in timed.items()
            if run.logged[0] <= day
        }
        ledger = Ledger(promise, until)
        broken, named = ledger.beyond([page for page in sent if page.run in until and page.at < midnight])
        if broken or named:
            return ledger.rate(()).units
    return None


def left_out(pages: Pages, group: Mapping[str, str], budget: float) -> list[Kept]:
    """The same for `SPLITS` random halves. Runs of one group, by their names, are in one half."""
    groups = sorted({*group.values()})
    found = []
    for seed in range(SPLITS):
        chosen = {*np.random.default_rng(seed).permutation(groups)[: len(groups) // 2].tolist()}
        halves = [
            part(pages, (name for name in group if (group[name] in chosen) is here)) for here in (True, False)
        ]
        found.append(kept(budget, *halves))
    return found


def drawn(pages: Pages, budget: float) -> list[Kept]:
    """Calibrate `SPLITS` archives that share no run, and look what comes of each in all other runs.

    An archive holds neighbours by name, and nobody watches the others.
    """
    names = sorted(pages.healthy)
    size = len(names) // SPLITS
    archives = [{*names[at * size : (at + 1) * size]} for at in range(SPLITS)]
    return [_calibrated(budget, part(pages, of), part(pages, {*names} - of)) for of in archives]


def part(pages: Pages, names: Iterable[str]) -> Pages:
    """The named runs alone."""
    wanted = {*names}
    kept = [{name: run for name, run in of.items() if name in wanted} for of in (pages.healthy, pages.others)]
    return Pages(*kept, pages.daily)


def paged_by(detector: str, runs: Mapping[str, ArchivedRun]) -> list[int]:
    """In how many runs a detector pages: as it is, and with each of `FACTORS`."""
    archive = Pages({**runs})
    factors = [Stricter(detector, factor) for factor in (1.0, *FACTORS)]
    return [archive.rate_of(change, [change]).pages for change in factors]


def row(title: str, budget: float, splits: list[Kept]) -> list[str]:
    """A row of the table."""
    return [
        title,
        f"{budget:g}",
        *(
            f"{mean(sum(isinstance(change, of) for change in one.changes) for one in splits):.1f}"
            for of in (Stricter, Kind)
        ),
        f"{mean(one.promise.highest for one in splits):.2%}",
        f"{mean(one.realised.share for one in splits):.2%}",
        f"{sum(one.inside for one in splits)} of {len(splits)}",
        f"{sum(one.noticed is not None for one in splits)}",
    ]
