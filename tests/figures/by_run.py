"""How many healthy runs ring a detector, by length and noise: the standard that a stable one meets.

python -m tests.figures.by_run     judges all runs by all detectors, and writes detectors/FIGURES.md

All detectors judge the same runs. For a detector that judges evaluations each point is an evaluation, so it
has runs of its own. Of both kinds there are equally many; the first of one and the first of the other count
as one run where all stable detectors are taken together.
"""

import json
import os
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, replace
from functools import cache
from multiprocessing import get_context
from pathlib import Path

import numpy as np

from detectors.api import Detector, Maturity
from detectors.discovery import all_detectors
from tests.figures.healthy import FAMILIES
from tests.figures.measure import EVALUATED, NOISES, alarms, kinds
from tests.figures.shapes import drawn

DATA = Path(__file__).with_name("by_run.json")

RUNS = {10: 120, 20: 120, 50: 120, 100: 120, 1_000: 120, 10_000: 12}
"""By points of a run: the runs of each family, noise and correlation."""

AT_ONCE = 40_000
"""Points that a process judges at a time."""

CORRELATIONS = 0.0, 0.6
CELLS = tuple((noise, correlation) for noise in NOISES for correlation in CORRELATIONS)

ONE_IN = 200
"""Of so many healthy runs one may ring a stable detector, at each length and noise."""

TOGETHER, ONE_IN_TOGETHER = "together", 60
"""The same for all stable detectors together."""

Rang = Mapping[str, Mapping[int, Sequence[tuple[int, int]]]]
"""By detector, or `TOGETHER`, and by points of a run: the runs of each of `CELLS`, and those that rang."""


@dataclass(frozen=True)
class Batch:
    """Healthy runs of one family, length, noise and correlation."""

    family: int
    points: int
    cell: int
    runs: int
    number: int

    def judged(self) -> dict[str, set[int]]:
        """By detector that judges such runs, which of them rang."""
        judges = _judges(self.family)
        rang: dict[str, set[int]] = {}
        for each_evaluated in (False, True):
            random = np.random.default_rng([self.points, self.family, self.cell, self.number])
            noise, correlation = CELLS[self.cell]
            shapes = [
                drawn(random, self.points, noise, each_evaluated=each_evaluated, resumes=True)
                for _ in range(self.runs)
            ]
            runs = [
                FAMILIES[self.family](random, replace(shape, autocorrelation=correlation)).settled()
                for shape in shapes
            ]
            for one in judges:
                if any(signal in EVALUATED for signal in one.judges) is each_evaluated:
                    rang[one.name] = {at for at, steps in enumerate(alarms(one, runs)[1]) if steps}
        return rang


def batches(runs: Mapping[int, int]) -> list[Batch]:
    """All runs, in parts of at most `AT_ONCE` points; the longest first."""
    return [
        Batch(family, points, cell, min(most, count - first), first)
        for points, count in sorted(runs.items(), reverse=True)
        for most in [max(1, AT_ONCE // points)]
        for family in range(len(FAMILIES))
        for cell in range(len(CELLS))
        for first in range(0, count, most)
    ]


def counted(judged: Iterable[tuple[Batch, Mapping[str, set[int]]]]) -> Rang:
    """How many runs rang, by detector, length and cell."""
    stable = {one.name for one in all_detectors().values() if one.maturity is Maturity.STABLE}
    found: dict[str, dict[int, list[tuple[int, int]]]] = {}
    for batch, rang in judged:
        together = set().union(*(runs for name, runs in rang.items() if name in stable))
        for name, runs in {**rang, TOGETHER: together}.items():
            cells = found.setdefault(name, {}).setdefault(batch.points, [(0, 0)] * len(CELLS))
            before, rung = cells[batch.cell]
            cells[batch.cell] = before + batch.runs, rung + len(runs)
    return {name: dict(sorted(of.items())) for name, of in sorted(found.items())}


def measured(runs: Mapping[int, int] = RUNS) -> Rang:
    """Judge all runs, with a process for each core."""
    with ProcessPoolExecutor(os.cpu_count(), mp_context=get_context("spawn")) as pool:
        parts = batches(runs)
        return counted(zip(parts, pool.map(Batch.judged, parts), strict=True))


def read() -> Rang:
    """What was measured last."""
    told = json.loads(DATA.read_text("utf-8"))
    return {
        name: {int(points): [(runs, rang) for runs, rang in cells] for points, cells in of.items()}
        for name, of in told.items()
    }


def keep(rang: Rang) -> None:
    """Write it as the data behind the page."""
    rows = [f"  {json.dumps(name)}: {json.dumps(of)}" for name, of in rang.items()]
    DATA.write_text("{\n" + ",\n".join(rows) + "\n}\n", "utf-8")


def broken(rang: Rang, name: str) -> list[str]:
    """Where a detector, or all together, rings on more runs than the standard allows.

    Of the runs of one length, the allowed share may ring, and of those of one noise and correlation that
    share, rounded up.
    """
    one_in = ONE_IN_TOGETHER if name == TOGETHER else ONE_IN
    found = []
    for points, cells in rang.get(name, {}).items():
        runs, rung = map(sum, zip(*cells, strict=True))
        if rung * one_in > runs or any(more > -(-some // one_in) for some, more in cells):
            found.append(f"rings on {rung} of {runs:,} healthy runs of {points:,} points")
    return found


@cache
def _judges(family: int) -> list[Detector]:
    detectors = [one for one in all_detectors().values() if isinstance(one, Detector)]
    return [one for one in detectors if FAMILIES[family] in kinds(one)]


if __name__ == "__main__":
    from tests.figures import page

    keep(measured())
    page.write(page.read())
