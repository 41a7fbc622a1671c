"""What is told of each run of the fleets: by its own log, and beside 20, 8 or 3 healthy siblings."""

from collections.abc import Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from functools import partial
from itertools import groupby
from pathlib import Path

from sentinel.comparison.siblings import Sibling, among_siblings, healthy_siblings
from sentinel.detectors.api import Maturity, Severity
from sentinel.detectors.discovery import all_detectors
from sentinel.pipeline import Pipeline
from sentinel.replays.judged import JudgedRun
from sentinel.replays.replaying import judged
from sentinel.replays.siblings import sibling
from sentinel.sources.discovery import discover
from studies.fleets.logs import SIBLINGS, Run, runs

COUNTS = (SIBLINGS, 8, 3)
"""Numbers of siblings to compare with."""


@dataclass(frozen=True)
class Outcome:
    """What is told of a run.

    ``alone`` is the detector of the first stable incident of severity warning or more, and empty if there is
    none. ``beside`` has, by the number of siblings, the first signal that left their band and the share of
    the run by which that was certain.
    """

    run: Run
    alone: str
    beside: Mapping[int, tuple[str, float] | None]


def measure(logs: Path) -> list[Outcome]:
    """The outcome of every run, in the order of `runs`."""
    fleets = [[*fleet] for _, fleet in groupby(sorted(runs(), key=_program), key=_program)]
    with ProcessPoolExecutor(2) as judges:
        return [one for fleet in judges.map(partial(_fleet, logs), fleets) for one in fleet]


def _program(run: Run) -> str:
    return run.program.name


def _fleet(logs: Path, fleet: Sequence[Run]) -> list[Outcome]:
    pipeline = Pipeline([rule for rule in all_detectors().values() if rule.enabled], {}, {})
    read = [_read(pipeline, logs / run.path, run.path) for run in fleet]
    known = [sibling(one, one.means, run.path) for one, run in zip(read, fleet, strict=True) if one.means]
    healthy = [one for one, run in zip(known, fleet, strict=True) if run.fault is None]
    return [
        Outcome(run, _alone(one), {count: _beside(own, healthy, count) for count in COUNTS})
        for run, one, own in zip(fleet, read, known, strict=True)
    ]


def _read(pipeline: Pipeline, log: Path, name: str) -> JudgedRun:
    (one,) = judged(pipeline, [(run, name) for run in discover([log]).runs], means=True)
    return one


def _alone(run: JudgedRun) -> str:
    alerts = (
        one.detector for one in run.own if one.severity > Severity.INFO and one.maturity is Maturity.STABLE
    )
    return next(alerts, "")


def _beside(own: Sibling, healthy: Sequence[Sibling], count: int) -> tuple[str, float] | None:
    """A run is no sibling of itself, so a healthy one is compared with one less."""
    others = [other for other in healthy if other.training != own.training][:count]
    found = among_siblings(own, healthy_siblings([own, *others])(own.fingerprint))
    if found is None or not found.deviations:
        return None
    first = found.deviations[0]
    return first.signal.value, first.step / own.last_step
