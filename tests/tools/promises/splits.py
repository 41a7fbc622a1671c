"""What is promised on one half of an archive, and what comes of it on the other."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from statistics import mean

import numpy as np

from sentinel.alerts.promise import Promise, Rate
from sentinel.replays.calibrating import Pages, kept_within, promised

BUDGETS = 0.001, 0.01, 0.05
SPLITS = 20


@dataclass(frozen=True)
class Kept:
    """A promise of one half beside the rate of the other half, and how many kinds became quiet for it."""

    promise: Promise
    moves: int
    realised: Rate

    @property
    def inside(self) -> bool:
        """Whether the other half pages no more often than was promised."""
        return self.realised.share <= self.promise.highest

    @property
    def noticed(self) -> bool:
        """Whether a watch says to calibrate again, once each page was answered."""
        return self.realised.low > self.promise.highest


def kept(budget: float, half: Pages, other: Pages) -> Kept:
    """Calibrate a half and look what comes of it in the other one."""
    moves = kept_within(budget, half)
    return Kept(promised(budget, half, 0.0), len(moves), other.rate({move.kind for move in moves}))


def left_out(pages: Pages, group: Mapping[str, str], budget: float) -> list[Kept]:
    """The same for `SPLITS` random halves. Runs of one group, by their names, are in one half."""
    groups, found = sorted({*group.values()}), []
    for seed in range(SPLITS):
        chosen = {*np.random.default_rng(seed).permutation(groups)[: len(groups) // 2].tolist()}
        halves = [
            part(pages, (name for name in group if (group[name] in chosen) is here)) for here in (True, False)
        ]
        found.append(kept(budget, *halves))
    return found


def part(pages: Pages, names: Iterable[str]) -> Pages:
    """The named runs alone."""
    wanted = {*names}
    return Pages(
        *({name: run for name, run in of.items() if name in wanted} for of in (pages.healthy, pages.others))
    )


def row(title: str, budget: float, splits: list[Kept]) -> list[str]:
    """A row of the table."""
    return [
        title,
        f"{budget:g}",
        f"{mean(one.moves for one in splits):.1f}",
        f"{mean(one.promise.highest for one in splits):.2%}",
        f"{mean(one.realised.share for one in splits):.2%}",
        f"{sum(one.inside for one in splits)} of {len(splits)}",
        f"{sum(one.noticed for one in splits)}",
    ]
