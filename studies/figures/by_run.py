"""How many healthy runs ring a detector, by length and noise: the standard that a stable one meets.

python -m studies.figures.by_run [DETECTOR...]     judges the runs by some detectors, or by all

For a detector that judges evaluations, each point of a run is an evaluation.
"""

import json
import os
import sys
from collections.abc import Collection, Iterable, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, replace
from functools import cache, partial
from multiprocessing import get_context
from pathlib import Path

import numpy as np

from sentinel.detectors.api import Detector, Maturity
from sentinel.detectors.discovery import all_detectors
from studies.figures.healthy import FAMILIES
from studies.figures.measure import EVALUATED, NOISES, alarms, kinds
from studies.figures.shapes import Run, drawn

DATA = Path(__file__).with_name("by_run.json")

RUNS = {10: 120, 20: 120, 50: 120, 100: 120, 1_000: 120, 10_000: 12}
"""By points of a run: the runs of each family, noise and correlation."""

AT_ONCE = 40_000
"""Points that a process judges at a time."""

CORRELATIONS = 0.0, 0.6
CELLS = tuple((noise, correlation) for noise in NOISES for correlation in CORRELATIONS)

ONE_IN = 200
"""Of so many healthy runs one may ring a stable detector, at each length and noise."""

ONE_IN_TOGETHER = 60
"""The same for all stable detectors together, each run counted once for each that it rings."""

Lengths = Mapping[int, Sequence[tuple[int, int]]]
"""By the points of a run: the runs of each of `CELLS`, and those that rang."""


@dataclass(frozen=True)
class Batch:
    """Healthy runs of one family, length, noise and correlation."""

    family: int
    points: int
    cell: int
    runs: int
    number: int

    def rang(self, names: Collection[str]) -> dict[str, int]:
        """How many of them ring each of the named detectors that judges such runs."""
        rang: dict[str, int] = {}
        for each_evaluated in (False, True):
            judges = [one for one in _judges(self.family, each_evaluated) if one.name in names]
            if judges:
                runs = self._drawn(each_evaluated)
                rang |= {one.name: sum(map(bool, alarms(one, runs)[1])) for one in judges}
        return rang

    def _drawn(self, each_evaluated: bool) -> list[Run]:
        random = np.random.default_rng([self.points, self.family, self.cell, self.number])
        noise, correlation = CELLS[self.cell]
        shapes = [
            drawn(random, self.points, noise, each_evaluated=each_evaluated, resumes=True)
            for _ in range(self.runs)
        ]
        family = FAMILIES[self.family]
        return [family(random, replace(one, autocorrelation=correlation)).settled() for one in shapes]


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


def counted(rang: Iterable[tuple[Batch, Mapping[str, int]]]) -> dict[str, Lengths]:
    """How many runs rang, by detector, length and cell."""
    found: dict[str, dict[int, list[tuple[int, int]]]] = {}
    for batch, of in rang:
        for name, more in of.items():
            cells = found.setdefault(name, {}).setdefault(batch.points, [(0, 0)] * len(CELLS))
            runs, before = cells[batch.cell]
            cells[batch.cell] = runs + batch.runs, before + more
    return {name: dict(sorted(of.items())) for name, of in found.items()}


def measured(names: Collection[str], runs: Mapping[int, int] = RUNS) -> dict[str, Lengths]:
    """Judge all runs by some detectors, with a process for each core."""
    with ProcessPoolExecutor(os.cpu_count(), mp_context=get_context("spawn")) as pool:
        parts = batches(runs)
        return counted(zip(parts, pool.map(partial(Batch.rang, names=names), parts), strict=True))


def read() -> dict[str, Lengths]:
    """What was measured last, by detector."""
    told = json.loads(DATA.read_text("utf-8"))
    return {
        name: {int(points): [(runs, rang) for runs, rang in cells] for points, cells in of.items()}
        for name, of in told.items()
    }


def keep(rang: Mapping[str, Lengths]) -> None:
    """Write it as the data behind the page."""
    rows = [f"  {json.dumps(name)}: {json.dumps(of)}" for name, of in sorted(rang.items())]
    DATA.write_text("{\n" + ",\n".join(rows) + "\n}\n", "utf-8")


def together(rang: Mapping[str, Lengths]) -> Lengths:
    """All stable detectors as one: of all runs, how many rings they gave, if no two ring on the same run."""
    detectors = all_detectors()
    stable = [name for name, one in detectors.items() if one.maturity is Maturity.STABLE]
    families = {kind for name in stable if name in rang for kind in kinds(detectors[name])}
    found = {}
    for points, runs in RUNS.items():
        there = [rang[name][points] for name in stable if points in rang.get(name, {})]
        if not there:
            continue
        rings = [sum(of[cell][1] for of in there) for cell in range(len(CELLS))]
        found[points] = [(runs * len(families), one) for one in rings]
    return found


def broken(of: Lengths, one_in: int = ONE_IN) -> list[str]:
    """Where more runs ring than the standard allows.

    Of the runs of one length, the allowed share may ring, and of those of one noise and correlation one more.
    """
    found = []
    for points, cells in of.items():
        runs, rang = map(sum, zip(*cells, strict=True))
        if rang * one_in > runs or any((more - 1) * one_in > some for some, more in cells):
            found.append(f"rings on {rang} of {runs:,} healthy runs of {points:,} points")
    return found


@cache
def _judges(family: int, each_evaluated: bool) -> list[Detector]:
    detectors = [one for one in all_detectors().values() if isinstance(one, Detector)]
    return [
        one
        for one in detectors
        if FAMILIES[family] in kinds(one)
        and any(signal in EVALUATED for signal in one.judges) is each_evaluated
    ]


if __name__ == "__main__":
    from studies.figures import page

    asked = {*sys.argv[1:]} or {*all_detectors()}
    keep({**(read() if DATA.exists() else {}), **measured(asked)})
    page.write(page.read())
