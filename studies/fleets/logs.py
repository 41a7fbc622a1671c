"""The logs of the fleets: which runs there are, and their training."""

import json
import shutil
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import NamedTuple

from studies.fleets.faults import FAULTS, STRENGTHS, Fault
from studies.fleets.programs import LOTTERIES, PROGRAMS, Knobs, Program, trained

SIBLINGS = 20
"""Healthy runs of each program."""


class Run(NamedTuple):
    """A run of a program; a healthy one has no fault."""

    program: Program
    seed: int
    fault: Fault | None = None
    strength: int = 0  # place in `STRENGTHS`

    @property
    def path(self) -> str:
        """Where its log lies, below that of the fleets."""
        if self.fault is None:
            return f"{self.program.name}/healthy-{self.seed:02}"
        return f"{self.program.name}/{self.fault.name}-{STRENGTHS[self.strength]}"


def runs() -> Iterator[Run]:
    """All runs. Those with a fault have seeds of their own."""
    for program in PROGRAMS.values():
        yield from (Run(program, seed) for seed in range(SIBLINGS))
    for number, fault in enumerate(FAULTS):
        for strength in range(len(STRENGTHS)):
            yield Run(PROGRAMS[fault.program], 100 + 3 * number + strength, fault, strength)


def lottery_runs() -> Iterator[Run]:
    """The runs of which the seed alone decides what they learn."""
    for program in LOTTERIES.values():
        yield from (Run(program, seed) for seed in range(SIBLINGS))


def train_all(logs: Path) -> None:
    """Train every run, with its log in a directory of its own."""
    shutil.rmtree(logs, ignore_errors=True)
    every = [*runs(), *lottery_runs()]
    with ProcessPoolExecutor(2) as trainers:
        for _ in trainers.map(train, every, [logs] * len(every), chunksize=8):
            pass


def train(run: Run, logs: Path) -> None:
    """Train a run, with its log below that of the fleets."""
    place = logs / run.path
    place.mkdir(parents=True)
    knobs = run.fault.knobs(run.strength) if run.fault else Knobs()
    with (place / "metrics.jsonl").open("w") as log:
        log.write(json.dumps({"config": run.program.config(run.seed)}) + "\n")
        for step, values in enumerate(trained(run.program, knobs, run.seed), 1):
            log.write(json.dumps({"step": step, **values}) + "\n")
