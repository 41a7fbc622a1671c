"""Judges logs from end to end: what `watch` would have said while they grew."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import reduce
from operator import add
from typing import TYPE_CHECKING

from sentinel.common.errors import SentinelError
from sentinel.common.text import fits, one_of
from sentinel.comparison.means import Means
from sentinel.config.file import Config
from sentinel.detection.duplicates import known_incidents, traces_of
from sentinel.notifications.decide import SinkPolicy
from sentinel.notifications.routing import RoutingContext
from sentinel.notifications.simulate import retold
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
_MAX_AT_ONCE = 256


def replay(
    paths: Sequence[Location],
    config: Config,
    progress: Callable[[int, int], None],
    *,
    curves: bool = False,
    compare: bool = False,
    baseline: Sequence[Location] = (),
    names: Sequence[str] = (),
) -> Replay:
    """Read every run under the paths to its end, with the ``curves`` of all tags if they are wanted.

    ``compare`` compares runs that differ in one setting. ``baseline`` has the places of good runs, with which
    each run is compared. If there are ``names``, only runs whose name, or its end, fits one of these globs
    are read. ``progress`` is called with the number of runs that are done and the number of all runs. Raises
    SentinelError if no path exists or nothing could be read.
    """
    parts = [*_parts(paths, config, progress, curves=curves, names=names)]
    runs = [run for part in parts for run in part.runs]
    against = _parts(baseline, config, lambda *_: None, curves=False, names=()) if baseline else ()
    good = [run for part in against for run in part.runs]
    compare_siblings(parts[0].pipeline, runs, good)
    simulate_notifications(runs, [sink.policy() for sink in config.sinks])
    complaints = [complaint for part in parts for complaint in part.read_issues]
    coverage = reduce(add, [part.coverage for part in parts])
    comparisons = _compared(runs, compare, good)
    unread = parts[0].unread
    return Replay(runs, complaints, parts[0].pipeline, coverage, comparisons=comparisons, unread=unread)


def replay_in_parts(
    paths: Sequence[Location],
    config: Config,
    progress: Callable[[int, int], None],
    *,
    curves: bool = False,
    names: Sequence[str] = (),
) -> Iterator[Replay]:
    """Yield the same as `replay` in parts of some dozens of runs, so that memory does not grow with their
    number.

    Each part decides for itself which sinks are told, and its runs are siblings only of one another. The
    complaints stand in the first part. Logs that lie in one directory share a part, if they are not hundreds,
    because one may continue another.
    """
    for part in _parts(paths, config, progress, curves=curves, names=names):
        compare_siblings(part.pipeline, part.runs)
        simulate_notifications(part.runs, [sink.policy() for sink in config.sinks])
        yield part


def _parts(
    paths: Sequence[Location],
    config: Config,
    progress: Callable[[int, int], None],
    *,
    curves: bool,
    names: Sequence[str],
) -> Iterator[Replay]:
    """Yield the runs, read and judged, in parts. Which sinks are told is not decided yet."""
    discovered = discover(paths, are_over=True)
    complaints = discovered.complained()
    pipeline = Pipeline(config.enabled_detectors, config.parameters, config.signals)
    base = common_path(paths)
    wanted = [(run, name) for run in discovered.runs if _is_wanted(name := run_name(run, base), names)]
    if discovered.runs and not wanted:
        there = run_name(discovered.runs[0], base)
        raise SentinelError(f"no run is called {one_of(names)}; there is {there}")
    done = 0
    any_read = False
    progress(done, len(wanted))
    for group in _groups(wanted):
        read = judged(pipeline, group, curves=curves, means=True)
        done += len(group)
        progress(done, len(wanted))
        if read:
            unread = () if any_read else discovered.unread
            coverage = _coverage(pipeline, read, complaints)
            yield Replay(read, complaints, pipeline, coverage, unread=unread)
            complaints = ()
            any_read = True
    if not any_read and complaints:
        raise SentinelError("\n".join(map(str, complaints)))
    if not any_read:
        raise SentinelError(nothing_read(paths, discovered.unread))


def judged(
    pipeline: Pipeline, named_runs: Iterable[tuple[Run, str]], *, curves: bool = False, means: bool = False
) -> list[JudgedRun]:
    """Return runs with their names, read to their end, without those in which there is nothing at all.

    Which sinks are told is not decided yet.
    """
    runs = [JudgedRun(pipeline.track(run, name)) for run, name in named_runs]
    for run in runs:
        run.curves = Curves() if curves else None
        run.means = Means() if means else None
    _read(pipeline, runs)
    return [
        run
        for run in runs
        if run.run_pipeline.log.metadata.points or run.incidents or run.read_issues or run.stopped
    ]


def _coverage(pipeline: Pipeline, runs: Sequence[JudgedRun], complaints: Sequence[ReadIssue]) -> Coverage:
    read = [run for run in runs if not run.unread]
    return Coverage(
        able=[sum(not missing for missing in run.lacking.values()) for run in read],
        cut=sum(run.stopped is not None for run in read),
        unread=len(runs) - len(read) + len(complaints),
        detectors=len(pipeline.detectors),
    )


def _is_wanted(name: str, globs: Sequence[str]) -> bool:
    return not globs or any(fits(name, glob) for glob in globs)


def _groups(runs: Iterable[tuple[Run, str]]) -> Iterator[list[tuple[Run, str]]]:
    """Yield the runs in groups that are read at once. The runs of one directory stay together if they can."""
    group: list[tuple[Run, str]] = []
    for run, name in runs:
        if group:
            beside = str(group[-1][0].path).rpartition("/")[0] == str(run.path).rpartition("/")[0]
            if len(group) >= (_MAX_AT_ONCE if beside else _RUNS_AT_ONCE):
                yield group
                group = []
        group.append((run, name))
    if group:
        yield group


def _read(pipeline: Pipeline, runs: Iterable[JudgedRun]) -> None:
    left = list(runs)
    with reading_ahead([run.run_pipeline.log for run in left]):
        while left:
            advances = pipeline.advance([run.run_pipeline for run in left])
            for run, advance in zip(left, advances, strict=True):
                run.add(advance)
            left = [run for run, advance in zip(left, advances, strict=True) if advance.more]
    whole = [run for run in runs if run.failure is None]
    for run, advance in zip(whole, pipeline.finalize([run.run_pipeline for run in whole]), strict=True):
        run.add(advance)
    for run in runs:
        if run.failure is not None:
            run.changes += pipeline.report_failure(run.run_pipeline, run.failure)
        run.incidents |= {incident.id: incident for incident in run.run_pipeline.incidents.open()}
        # Streams of one run were read one after the other; this is their order by the log's clock.
        run.incidents = dict(sorted(run.incidents.items(), key=lambda item: item[1].fired_time or 0.0))


def _compared(
    runs: Sequence[JudgedRun], compare: bool, baselines: Sequence[JudgedRun]
) -> "Sequence[Comparison]":
    if not (compare or baselines):
        return ()
    from sentinel.replays.comparing import against_baseline, compared  # scipy is slow to import

    among = compared(runs) if compare else ()
    return [*among, *(against_baseline(runs, baselines) if baselines else ())]


def simulate_notifications(runs: Sequence[JudgedRun], policies: Sequence[SinkPolicy]) -> None:
    """Decide what the sinks would have heard of the runs; see `retold`."""
    incidents = (incident for run in runs for incident in run.incidents.values())
    run_pipelines = [run.run_pipeline for run in runs]
    known = known_incidents(incidents, run_pipelines, traces_of(run_pipelines))
    stories = [(run.run_pipeline.described(), run.changes) for run in runs]
    for run, told in zip(runs, retold(stories, RoutingContext(policies, (), {}, known)), strict=True):
        run.notifications = told
