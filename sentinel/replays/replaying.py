"""Judges logs from end to end: what `watch` would have sent while they grew."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import reduce
from operator import add
from typing import TYPE_CHECKING

from sentinel.common.errors import SentinelError
from sentinel.common.run_glob import any_fits, run_glob
from sentinel.common.text import one_of
from sentinel.comparison.means import Means
from sentinel.config.judging import JudgingConfig
from sentinel.detection.duplicates import known_incidents, traces_of
from sentinel.notifications.decide import SinkPolicy
from sentinel.notifications.routing import RoutingContext
from sentinel.notifications.simulate import simulated_decisions
from sentinel.pipeline import Pipeline
from sentinel.replays.coverage import Coverage
from sentinel.replays.judged import JudgedRun
from sentinel.replays.replay import Replay
from sentinel.replays.siblings import compare_siblings
from sentinel.runs.prefetch import reading_ahead
from sentinel.series.curves import Curves
from sentinel.sources.base import ReadIssue, Run
from sentinel.sources.discovery import common_path, discover, nothing_read, run_name
from sentinel.sources.location import Location

if TYPE_CHECKING:
    from sentinel.comparison.measures import Comparison

_RUNS_AT_ONCE = 64
_MAX_RUNS_AT_ONCE = 256  # if they lie in one directory


def replay(
    paths: Sequence[Location],
    config: JudgingConfig,
    progress: Callable[[int, int], None],
    *,
    curves: bool = False,
    compare: bool = False,
    baseline: Sequence[Location] = (),
    names: Sequence[str] = (),
) -> Replay:
    """Read every run under the paths to its end, with the ``curves`` of all tags if they are wanted.

    ``compare`` compares runs that differ in one setting. ``baseline`` has the places of good runs, with which
    each run is compared. If there are ``names``, only runs that one of these globs fits are read
    (`sentinel.common.run_glob`). ``progress`` is called with the number of finished runs and the number of
    all runs. Raises SentinelError if no path exists or nothing could be read.
    """
    replay_parts = [*_replay_parts(paths, config, progress, curves=curves, names=names)]
    runs = [run for part in replay_parts for run in part.runs]
    baseline_parts = (
        _replay_parts(baseline, config, lambda *_: None, curves=False, names=()) if baseline else ()
    )
    baseline_runs = [run for part in baseline_parts for run in part.runs]
    compare_siblings(replay_parts[0].pipeline, runs, baseline_runs)
    simulate_notifications(runs, config.policies)
    read_issues = [issue for part in replay_parts for issue in part.read_issues]
    coverage = reduce(add, [part.coverage for part in replay_parts])
    comparisons = _comparisons(runs, compare, baseline_runs)
    unread = replay_parts[0].unread
    return Replay(
        runs, read_issues, replay_parts[0].pipeline, coverage, comparisons=comparisons, unread=unread
    )


def replay_in_parts(
    paths: Sequence[Location],
    config: JudgingConfig,
    progress: Callable[[int, int], None],
    *,
    curves: bool = False,
    names: Sequence[str] = (),
) -> Iterator[Replay]:
    """Yield the same as `replay` in parts of some dozens of runs, so that memory does not grow with their
    number.

    Notifications are decided for each part alone, and its runs are siblings only of one another. The first
    part has the read issues of discovery. Logs that lie in one directory share a part, if they are not
    hundreds, because one may continue another.
    """
    for replay_part in _replay_parts(paths, config, progress, curves=curves, names=names):
        compare_siblings(replay_part.pipeline, replay_part.runs)
        simulate_notifications(replay_part.runs, config.policies)
        yield replay_part


def _replay_parts(
    paths: Sequence[Location],
    config: JudgingConfig,
    progress: Callable[[int, int], None],
    *,
    curves: bool,
    names: Sequence[str],
) -> Iterator[Replay]:
    """Yield the runs, read and judged, in parts, without decisions about notifications."""
    discovered = discover(paths, are_over=True, forms=config.forms)
    read_issues = discovered.complained()
    pipeline = Pipeline(config.enabled_detectors, config.parameters, config.signals)
    base = common_path(paths)
    all_runs = [(run, run_name(run, base)) for run in discovered.runs]
    globs = [*map(run_glob, names)]
    runs = [(run, name) for run, name in all_runs if not globs or any_fits(globs, name, str(run.path))]
    if all_runs and not runs:
        _, example = all_runs[0]
        raise SentinelError(f"no run is called {one_of(names)}; there is {example}")
    finished = 0
    any_read = False
    progress(finished, len(runs))
    for group in groups(runs):
        group_runs = judged(pipeline, group, curves=curves, means=True)
        finished += len(group)
        progress(finished, len(runs))
        if group_runs:
            unread = () if any_read else discovered.unread
            coverage = coverage_of(pipeline, group_runs, read_issues)
            yield Replay(group_runs, read_issues, pipeline, coverage, unread=unread)
            read_issues = ()
            any_read = True
    if not any_read and read_issues:
        raise SentinelError("\n".join(map(str, read_issues)))
    if not any_read:
        raise SentinelError(nothing_read(paths, discovered.unread))


def judged(
    pipeline: Pipeline, named_runs: Iterable[tuple[Run, str]], *, curves: bool = False, means: bool = False
) -> list[JudgedRun]:
    """Read runs with their names to their end and judge them, without decisions about notifications. Leave
    out those in which there is nothing at all.
    """
    runs = [JudgedRun(pipeline.track(run, name)) for run, name in named_runs]
    for run in runs:
        run.curves = Curves() if curves else None
        run.means = Means() if means else None
    _read_and_judge(pipeline, runs)
    return [
        run
        for run in runs
        if run.run_pipeline.log.metadata.points or run.incidents or run.read_issues or run.stopped
    ]


def coverage_of(pipeline: Pipeline, runs: Sequence[JudgedRun], read_issues: Sequence[ReadIssue]) -> Coverage:
    """Return how many runs were read and judged."""
    readable = [run for run in runs if not run.unread]
    return Coverage(
        able=[sum(not missing for missing in run.lacking.values()) for run in readable],
        cut=sum(run.stopped is not None for run in readable),
        unread=len(runs) - len(readable) + len(read_issues),
        detectors=len(pipeline.detectors),
    )


def groups(runs: Iterable[tuple[Run, str]]) -> Iterator[list[tuple[Run, str]]]:
    """Yield the runs in groups that are read at once. The runs of one directory stay together if they can."""
    group: list[tuple[Run, str]] = []
    for run, name in runs:
        if group:
            last_run, _ = group[-1]
            is_same_directory = _directory(last_run) == _directory(run)
            if len(group) >= (_MAX_RUNS_AT_ONCE if is_same_directory else _RUNS_AT_ONCE):
                yield group
                group = []
        group.append((run, name))
    if group:
        yield group


def _directory(run: Run) -> str:
    return str(run.path).rpartition("/")[0]


def _read_and_judge(pipeline: Pipeline, runs: Sequence[JudgedRun]) -> None:
    unfinished = list(runs)
    with reading_ahead([run.run_pipeline.log for run in unfinished]):
        while unfinished:
            advances = pipeline.advance([run.run_pipeline for run in unfinished], are_over=True)
            for run, advance in zip(unfinished, advances, strict=True):
                run.add(advance)
            unfinished = [run for run, advance in zip(unfinished, advances, strict=True) if advance.more]
    for run in runs:
        if run.failure is not None:
            run.changes += pipeline.report_failure(run.run_pipeline, run.failure)
        run.incidents |= {incident.id: incident for incident in run.run_pipeline.incidents.open()}
        # Streams of one run were read one after the other; this orders their incidents by the log's clock.
        run.incidents = dict(sorted(run.incidents.items(), key=lambda item: item[1].fired_time or 0.0))


def _comparisons(
    runs: Sequence[JudgedRun], compare: bool, baselines: Sequence[JudgedRun]
) -> "Sequence[Comparison]":
    if not (compare or baselines):
        return ()
    from sentinel.replays.comparing import against_baseline, compared  # scipy is slow to import

    return [*(compared(runs) if compare else ()), *(against_baseline(runs, baselines) if baselines else ())]


def simulate_notifications(runs: Sequence[JudgedRun], policies: Sequence[SinkPolicy]) -> None:
    """Decide what the sinks would have been sent of the runs; see `simulated_decisions`."""
    run_pipelines = [run.run_pipeline for run in runs]
    incidents = known_incidents(
        (incident for run in runs for incident in run.incidents.values()),
        run_pipelines,
        traces_of(run_pipelines),
    )
    stories = [(run.run_pipeline.described(), run.changes) for run in runs]
    context = RoutingContext(policies, (), {}, incidents)
    for run, decisions in zip(runs, simulated_decisions(stories, context), strict=True):
        run.notifications = decisions
