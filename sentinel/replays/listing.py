"""Lists the runs under some paths without judging them.

To answer at once, it reads a few runs whole, but only the beginnings of many.
"""

import math
from collections.abc import Collection, Mapping, Sequence
from functools import cache, partial

import msgspec

from sentinel.common.errors import SentinelError
from sentinel.common.fault_isolation import Guard
from sentinel.comparison.fingerprint import Fingerprint, differing, sibling_groups
from sentinel.detectors.api import Declaration, Detector
from sentinel.pipeline import Pipeline
from sentinel.runs.continuations import Observation, observe, statuses
from sentinel.runs.log import RunOverview
from sentinel.runs.state import RunStatus
from sentinel.runs.training_groups import trainings_of
from sentinel.sources.base import ReadIssue, Run, flush
from sentinel.sources.console.line_forms import LineForm
from sentinel.sources.discovery import common_path, discover, nothing_read, run_name
from sentinel.sources.location import Location

_MAX_SCANNED_POINTS = 2_000_000  # of all runs together, if there are at most `_FEW_RUNS`
_FEW_RUNS = 32
_ENOUGH_OF_LIMIT = 0.75  # fraction of the limit; sources give whole rows, and another poll would cost more
_MIN_SCANNED_POINTS = 64  # of a run, if there are very many; even fewer are enough to recognise a framework


class ListedRun(msgspec.Struct, frozen=True):
    """A run that was found. If it was not read ``whole``, it may have more points and attempts.

    ``training`` is the id of the log that tells most of its training: its own id, if there is no other.
    """

    overview: RunOverview
    training: str
    status: RunStatus
    stopped: str | None  # why it cannot be judged, if so
    whole: bool
    lacking: Mapping[str, Sequence[str]]  # missing signals, by the detector that needs them

    @property
    def stands_for_its_training(self) -> bool:
        """Whether it is the log of its training that tells most."""
        return self.training == _id(self.overview)


class Listing(msgspec.Struct, frozen=True):
    """The runs under some paths, sorted by path, and what could not be read."""

    runs: Sequence[ListedRun]
    read_issues: Sequence[ReadIssue]
    detectors: int  # their number
    unread: Sequence[ReadIssue] = ()  # files that look like logs and hold no numbers that are understood


class Siblings(msgspec.Struct, frozen=True):
    """Runs of one training program, and the values of the settings in which they differ."""

    runs: Sequence[ListedRun]
    differ: Mapping[str, Sequence[str]]


def siblings(listing: Listing) -> list[Siblings]:
    """Return the sibling groups among a listing's trainings; see `sentinel.comparison.fingerprint`."""
    runs = [run for run in listing.runs if run.stands_for_its_training]
    prints = [_run_fingerprint(run.overview) for run in runs]
    return [
        Siblings([runs[index] for index in group], differing(prints[index] for index in group))
        for group in sibling_groups(prints)
    ]


def _run_fingerprint(log: RunOverview) -> Fingerprint:
    understanding = log.understanding
    settings = {name: setting.value for name, setting in log.metadata.config.items()}
    return Fingerprint.from_settings(understanding.framework, understanding.tags, settings)


def list_runs(
    paths: Sequence[Location],
    signals: Mapping[str, str],
    detectors: Collection[Declaration],
    now: float,
    forms: Sequence[LineForm] = (),
) -> Listing:
    """List every run under the paths.

    ``signals`` gives the meaning of the user's own tags. What ``detectors`` need is told of each run; they
    judge nothing, but the histories that they ask for tell how a run ended, as they do in a replay. ``forms``
    are forms of lines that the user named.

    Raises SentinelError if no path exists or no run is found.
    """
    discovered = discover(paths, are_over=True, forms=forms)
    discovery_issues = discovered.complained()
    if not discovered.runs and discovery_issues:
        raise SentinelError("\n".join(map(str, discovery_issues)))
    if not discovered.runs:
        raise SentinelError(nothing_read(paths, discovered.unread))
    run_count = len(discovered.runs)  # each run has a fixed cost, so many runs leave less time for points
    limit = max(_MIN_SCANNED_POINTS, _MAX_SCANNED_POINTS // max(run_count, run_count**2 // _FEW_RUNS))
    pipeline = Pipeline((detector for detector in detectors if isinstance(detector, Detector)), {}, signals)
    base = common_path(paths)

    scanned_runs = [_scan(pipeline, run, run_name(run, base), limit, now) for run in discovered.runs]
    trainings = _training_by_log([scanned.observation.run for scanned in scanned_runs])
    run_statuses = statuses([scanned.observation for scanned in scanned_runs])

    @cache  # equal in all runs of a project
    def lacking(signals: Collection[str]) -> dict[str, list[str]]:
        missing = {detector.name: detector.demand.missing(signals) for detector in detectors}
        return {name: names for name, names in missing.items() if names}

    runs = [
        ListedRun(
            overview=scanned.observation.run,
            training=trainings[_id(scanned.observation.run)],
            status=status,
            stopped=scanned.failure or scanned.observation.run.stopped,
            whole=scanned.observation.whole,
            lacking=lacking(tuple(scanned.observation.run.understanding.signals)),
        )
        for scanned, status in zip(scanned_runs, run_statuses, strict=True)
    ]
    read_issues = [*discovery_issues, *(issue for scanned in scanned_runs for issue in scanned.read_issues)]
    return Listing(runs, read_issues, len(detectors), discovered.unread)


def _id(log: RunOverview) -> str:
    return f"{log.format}:{log.path}"


def _training_by_log(logs: Sequence[RunOverview]) -> dict[str, str]:
    """Return, by log id, the log that tells most of the same training. A log with an end comes first."""
    best_first = sorted(
        logs,
        key=lambda log: (
            log.ending is None,
            -len(log.understanding.signals),
            -len(log.metadata.config),
            _id(log),
        ),
    )
    return trainings_of({_id(log): log.metadata for log in best_first})


class _ScannedRun(msgspec.Struct, frozen=True):
    observation: Observation
    failure: str | None
    read_issues: Sequence[ReadIssue]


def _scan(pipeline: Pipeline, run: Run, name: str, limit: int, now: float) -> _ScannedRun:
    """Read about ``limit`` points of a run."""
    run_pipeline = pipeline.track(run, name)
    log = run_pipeline.log
    guard = Guard()
    read_issues = list[ReadIssue]()
    while True:
        ingested = run_pipeline.ingest(limit, math.nan, guard)
        read_issues += ingested.read_issues
        more = ingested.more and run.id not in guard.failures
        if not more or log.metadata.points > _ENOUGH_OF_LIMIT * limit:
            break
    for chunk in () if more else flush(run.source, log.cursor):
        log.metadata.count(chunk)
    observation = guard(run, "the listing", partial(observe, log, not more, now))
    if observation is None:
        observation = Observation(pipeline.track(run, name).log.overview(), whole=False, silent_seconds=0.0)
    return _ScannedRun(observation, guard.failures.get(run.id), read_issues)
