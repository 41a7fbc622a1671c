"""Which groups of healthy runs end far apart, of all seeds of a program and of few."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path

import numpy as np

from sentinel.comparison.measures import ComparedRun
from sentinel.comparison.seeds import SeedsApart, seeds_apart
from sentinel.pipeline import Pipeline
from sentinel.replays.replaying import judged
from sentinel.sources.discovery import discover
from studies.fleets.logs import Run, lottery_runs, runs
from studies.fleets.programs import Program

SIZES = 8, 5
"""Numbers of seeds in the small groups."""

DRAWS = 50
"""Small groups of each size, drawn from the seeds of a program."""


@dataclass(frozen=True)
class Seeds:
    """Of the seeds of a program: whether all are told, and how many small groups are, by their size."""

    program: Program
    of_all: SeedsApart | None
    of_few: dict[int, int]


def measure_seeds(logs: Path) -> list[Seeds]:
    """What is told of the healthy runs of each program, the lotteries last."""
    healthy = [run for run in runs() if run.fault is None]
    return [*_measured(logs, healthy), *_measured(logs, lottery_runs())]


def _measured(logs: Path, healthy: Iterable[Run]) -> Iterator[Seeds]:
    pipeline = Pipeline((), {}, {})
    for program, of_program in groupby(healthy, key=lambda run: run.program):
        read = [_read(pipeline, logs / run.path) for run in of_program]
        yield Seeds(program, seeds_apart(read), {size: _told(read, size) for size in SIZES})


def _read(pipeline: Pipeline, log: Path) -> ComparedRun:
    (run,) = discover([log]).runs
    (one,) = judged(pipeline, [(run, log.name)], means=True)
    assert one.means is not None
    return ComparedRun(log.name, {}, one.run_pipeline.log.understanding().signals, one.means)


def _told(read: Sequence[ComparedRun], size: int) -> int:
    random = np.random.default_rng(size)
    draws = (random.choice(len(read), size, replace=False) for _ in range(DRAWS))
    return sum(seeds_apart([read[seed] for seed in draw]) is not None for draw in draws)
