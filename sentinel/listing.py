"""What lies under some paths: runs, and what can be made of them, without judging any.

So that the answer comes at once, few runs are read whole and of many only the beginnings.
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from detectors.api import Demand
from sentinel.errors import SentinelError
from sentinel.pipeline import Pipeline
from sentinel.processes import in_copies, in_turn
from sentinel.runs.log import Overview
from sentinel.runs.standings import Look, look_at, standings
from sentinel.runs.state import Standing
from sentinel.sources.base import Complaint, Run
from sentinel.sources.discovery import common_path, discover, run_name
from sentinel.sources.places import Place

_MOST_POINTS = 2_000_000  # of all runs, if these are few
_FEW_RUNS = 32
_ENOUGH = 0.75  # of the points asked for, since sources give whole rows; another poll would cost more
_FEWEST_POINTS = 64  # of one of very many; a framework is recognised by fewer


@dataclass(frozen=True)
class ListedRun:
    """A run that was found. Of one that is not ``whole``, points and attempts are at least so many."""

    overview: Overview
    standing: Standing
    stopped: str | None  # why it cannot be judged, if something keeps it from that
    whole: bool
    lacking: Mapping[str, Sequence[str]]  # signals, by the detector that cannot judge without them


@dataclass(frozen=True)
class Listing:
    """The runs under some paths, sorted by path, and what could not be read."""

    runs: Sequence[ListedRun]
    complaints: Sequence[Complaint]


def list_runs(
    paths: Sequence[Place],
    signals: Callable[[], Mapping[str, str]],
    demands: Callable[[], Mapping[str, Demand]],
    now: float,
) -> Listing:
    """Look at every run under the paths.

    ``signals`` tells what the user's own tags mean, ``demands`` what each detector must be given. They are
    called as late as can be, since the answers may still be on their way.

    Raises SentinelError for a path that does not exist and where there is no run.
    """
    local = all(isinstance(path, Path) for path in paths)  # else copies would share a connection
    spread = in_copies if local else in_turn
    found = discover(paths, looks=spread)
    if found.missing:
        raise SentinelError(f"{found.missing[0]}: no such file or directory")
    if not found.runs and found.complaints:
        raise SentinelError("\n".join(map(str, found.complaints)))
    if not found.runs:
        raise SentinelError(f"{', '.join(map(str, paths))}: no log that sentinel can read")
    count = len(found.runs)  # the more there are, the less time is left beside what each run costs
    limit = max(_FEWEST_POINTS, _MOST_POINTS // max(count, count**2 // _FEW_RUNS))
    pipeline, base = Pipeline((), {}, signals(), _failed), common_path(paths)

    def look(run: Run) -> _Listed:
        return _look(pipeline, run, run_name(run, base), limit, now)

    listed = spread(look, found.runs)
    asked = demands()
    lacking = cache(lambda logged: _lacking(logged, asked))  # the same in all runs of one project
    runs = [
        ListedRun(
            one.look.run,
            stands,
            one.failure or one.look.run.stopped,
            one.look.whole,
            lacking(tuple(one.look.run.understanding.signals)),
        )
        for one, stands in zip(listed, standings([one.look for one in listed]), strict=True)
    ]
    return Listing(runs, [*found.complaints, *(one for run in listed for one in run.complaints)])


@dataclass(frozen=True)
class _Listed:
    look: Look
    failure: str | None
    complaints: Sequence[Complaint]


def _look(pipeline: Pipeline, run: Run, name: str, limit: int, now: float) -> _Listed:
    """Read about ``limit`` points."""
    tracker = pipeline.track(run, name)
    log, complaints = tracker.log, list[Complaint]()
    while True:
        (step,) = pipeline.advance([tracker], limit)
        complaints += step.complaints
        if not step.more or log.facts.points > _ENOUGH * limit:
            break
    return _Listed(look_at(log, not step.more, now), step.failure, complaints)


def _failed(detector: str, run: str, error: BaseException) -> None:
    """Nothing is judged, so no detector fails."""


def _lacking(signals: Collection[str], demands: Mapping[str, Demand]) -> dict[str, list[str]]:
    """What each of the detectors lacks that cannot judge a run with these signals."""
    lacking = {detector: demand.missing(signals) for detector, demand in demands.items()}
    return {name: missing for name, missing in lacking.items() if missing}
