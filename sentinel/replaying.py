"""Judges logs from end to end: what `watch` would have said while they grew."""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property, reduce
from operator import add
from typing import TYPE_CHECKING

from detectors.api import Detector
from detectors.severity import Severity
from sentinel.alerts.decision import SinkPolicy
from sentinel.alerts.incident import Change, Incident
from sentinel.alerts.outcomes import Audience, Outcome
from sentinel.alerts.retelling import retold
from sentinel.comparison.means import Means
from sentinel.config.file import Config
from sentinel.coverage import Coverage, held_back
from sentinel.errors import SentinelError
from sentinel.frames.curves import Curves
from sentinel.joining import known_incidents
from sentinel.pipeline import Advance, Pipeline
from sentinel.runs.ahead import reading_ahead
from sentinel.runs.same_training import trainings_of
from sentinel.sources.base import Complaint, Run
from sentinel.sources.discovery import common_path, discover, run_name
from sentinel.sources.places import Place
from sentinel.text import fits, one_of
from sentinel.tracking import Tracker

if TYPE_CHECKING:
    from sentinel.comparison.measures import Comparison

_RUNS_AT_ONCE = 64
_MOST_AT_ONCE = 256


@dataclass
class ReplayedRun:
    """A run read to its end."""

    tracker: Tracker
    incidents: dict[str, Incident] = field(default_factory=dict)  # by id, in the order of firing
    changes: list[Change] = field(default_factory=list)
    told: dict[str, list[Outcome]] = field(default_factory=dict)  # by incident id; without reminders
    complaints: list[Complaint] = field(default_factory=list)
    failure: str | None = None
    curves: Curves | None = None  # if they are wanted
    means: Means | None = None  # if the runs are to be compared
    looked: Counter[tuple[str, str]] = field(default_factory=Counter)  # see `Detection`

    @property
    def stopped(self) -> str | None:
        """Why the run was not judged to its end; None if it was."""
        return self.failure or self.tracker.log.stopped

    @property
    def unread(self) -> bool:
        """Whether nothing of the run could be read."""
        broken = self.stopped is not None or (bool(self.complaints) and not self.incidents)
        return broken and not self.tracker.log.facts.points

    @property
    def own(self) -> list[Incident]:
        """The incidents that no other one explains."""
        return [incident for incident in self.incidents.values() if incident.inhibited_by is None]

    @property
    def worst(self) -> Severity:
        """The severity of the worst of its own incidents."""
        return max((incident.severity for incident in self.own), default=Severity.CLEAN)

    def add(self, advance: Advance) -> None:
        """Add what one poll brought."""
        if self.curves is not None:
            self.curves.add(advance.chunks)
        if self.means is not None:
            self.means.add(advance.chunks)
        self.complaints += advance.complaints
        self.failure = advance.failure
        self.changes += advance.changes
        self.incidents |= {change.incident.id: change.incident for change in advance.changes}
        self.looked.update(advance.looked)


@dataclass(frozen=True)
class Replay:
    """Runs that were read to their end, and complaints about what could not be read.

    The runs are all runs under the paths, sorted by path, or the next of them; see `replay_in_parts`.
    ``selection`` says which incidents these are, if not all: "kl-blowup since step 400".
    """

    runs: Sequence[ReplayedRun]
    complaints: Sequence[Complaint]
    pipeline: Pipeline
    coverage: Coverage
    selection: str = ""
    comparisons: Sequence["Comparison"] = ()

    @cached_property
    def trainings(self) -> dict[str, str]:
        """By the id of each run, that of the first log of its training."""
        return trainings_of({run.tracker.id: run.tracker.log.facts for run in self.runs})

    def lacking(self, run: ReplayedRun) -> dict[str, list[str]]:
        """The signals that each detector lacks in a run; none for those that can judge it."""
        return _lacking(self.pipeline, run)

    def held_back(self, run: ReplayedRun) -> dict[str, dict[str, int]]:
        """Why detectors judged no row of a run that logs their signals; see `coverage.held_back`."""
        able = [name for name, missing in self.lacking(run).items() if not missing]
        return held_back(run.looked, [n for n in able if isinstance(self.pipeline.detectors[n], Detector)])


def replay(
    paths: Sequence[Place],
    config: Config,
    progress: Callable[[int, int], None],
    *,
    curves: bool = False,
    compare: bool = False,
    baseline: Sequence[Place] = (),
    names: Sequence[str] = (),
) -> Replay:
    """Read every run under the paths to its end, with the ``curves`` of all tags if they are wanted.

    ``compare`` compares runs that differ in one setting. ``baseline`` has the places of good runs, with which
    each run is compared. If there are ``names``, only runs whose name, or its end, fits one of these globs
    are read. ``progress`` is called with the number of runs that are done and the number of all runs. Raises
    SentinelError if no path exists or nothing could be read.
    """
    means = compare or bool(baseline)
    parts = [*_parts(paths, config, progress, curves=curves, means=means, names=names)]
    runs = [run for part in parts for run in part.runs]
    good = _parts(baseline, config, lambda *_: None, curves=False, means=True, names=()) if baseline else ()
    tell_in_order(runs, [sink.policy() for sink in config.sinks])
    complaints = [one for part in parts for one in part.complaints]
    coverage = reduce(add, [part.coverage for part in parts])
    comparisons = _compared(runs, compare, [run for part in good for run in part.runs]) if means else ()
    return Replay(runs, complaints, parts[0].pipeline, coverage, comparisons=comparisons)


def replay_in_parts(
    paths: Sequence[Place],
    config: Config,
    progress: Callable[[int, int], None],
    *,
    curves: bool = False,
    names: Sequence[str] = (),
) -> Iterator[Replay]:
    """The same as `replay` in parts of some dozens of runs, so that memory does not grow with their number.

    Each part decides for itself which sinks are told. The complaints stand in the first part. Logs that lie
    in one directory share a part, if they are not hundreds, because one may continue another.
    """
    for part in _parts(paths, config, progress, curves=curves, means=False, names=names):
        tell_in_order(part.runs, [sink.policy() for sink in config.sinks])
        yield part


def _parts(
    paths: Sequence[Place],
    config: Config,
    progress: Callable[[int, int], None],
    *,
    curves: bool,
    means: bool,
    names: Sequence[str],
) -> Iterator[Replay]:
    """The runs, read and judged, in parts. Which sinks are told is not decided yet."""
    found = discover(paths)
    complaints = found.complained()
    pipeline = Pipeline(config.enabled_detectors, config.parameters, config.signals)
    base = common_path(paths)
    wanted = [(run, name) for run in found.runs if _is_wanted(name := run_name(run, base), names)]
    if found.runs and not wanted:
        there = run_name(found.runs[0], base)
        raise SentinelError(f"no run is called {one_of(names)}; there is {there}")
    done, any_read = 0, False
    progress(done, len(wanted))
    for group in _groups(wanted):
        read = judged(pipeline, group, curves=curves, means=means)
        done += len(group)
        progress(done, len(wanted))
        if read:
            yield Replay(read, complaints, pipeline, _coverage(pipeline, read, complaints))
            complaints, any_read = (), True
    if not any_read and complaints:
        raise SentinelError("\n".join(map(str, complaints)))
    if not any_read:
        raise SentinelError(f"{', '.join(map(str, paths))}: no log that sentinel can read")


def judged(
    pipeline: Pipeline, found: Iterable[tuple[Run, str]], *, curves: bool = False, means: bool = False
) -> list[ReplayedRun]:
    """Runs with their names, read to their end, without those in which there is nothing at all.

    Which sinks are told is not decided yet.
    """
    runs = [ReplayedRun(pipeline.track(run, name)) for run, name in found]
    for one in runs:
        one.curves = Curves() if curves else None
        one.means = Means() if means else None
    _read(pipeline, runs)
    return [
        run for run in runs if run.tracker.log.facts.points or run.incidents or run.complaints or run.stopped
    ]


def _lacking(pipeline: Pipeline, run: ReplayedRun) -> dict[str, list[str]]:
    log = run.tracker.log
    signals = log.understanding().signals
    return {name: one.demand.missing(signals, log.no_clock) for name, one in pipeline.detectors.items()}


def _coverage(pipeline: Pipeline, runs: Sequence[ReplayedRun], complaints: Sequence[Complaint]) -> Coverage:
    read = [run for run in runs if not run.unread]
    return Coverage(
        able=[sum(not missing for missing in _lacking(pipeline, run).values()) for run in read],
        cut=sum(run.stopped is not None for run in read),
        unread=len(runs) - len(read) + len(complaints),
        detectors=len(pipeline.detectors),
    )


def _is_wanted(name: str, globs: Sequence[str]) -> bool:
    return not globs or any(fits(name, glob) for glob in globs)


def _groups(runs: Iterable[tuple[Run, str]]) -> Iterator[list[tuple[Run, str]]]:
    """The runs in groups that are read at once. The runs of one directory stay together if they can."""
    group: list[tuple[Run, str]] = []
    for run, name in runs:
        if group:
            beside = str(group[-1][0].path).rpartition("/")[0] == str(run.path).rpartition("/")[0]
            if len(group) >= (_MOST_AT_ONCE if beside else _RUNS_AT_ONCE):
                yield group
                group = []
        group.append((run, name))
    if group:
        yield group


def _read(pipeline: Pipeline, runs: Iterable[ReplayedRun]) -> None:
    left = list(runs)
    with reading_ahead([run.tracker.log for run in left]):
        while left:
            advances = pipeline.advance([run.tracker for run in left])
            for run, advance in zip(left, advances, strict=True):
                run.add(advance)
            left = [run for run, advance in zip(left, advances, strict=True) if advance.more]
    whole = [run for run in runs if run.failure is None]
    for run, advance in zip(whole, pipeline.conclude([run.tracker for run in whole]), strict=True):
        run.add(advance)
    for run in runs:
        if run.failure is not None:
            run.changes += pipeline.report_failure(run.tracker, run.failure)
        run.incidents |= {incident.id: incident for incident in run.tracker.book.open()}
        # Streams of one run were read one after the other; this is their order by the log's clock.
        run.incidents = dict(sorted(run.incidents.items(), key=lambda item: item[1].fired_time or 0.0))


def _compared(
    runs: Sequence[ReplayedRun], compare: bool, baselines: Sequence[ReplayedRun]
) -> "Sequence[Comparison]":
    from sentinel.comparing import against_baseline, compared  # scipy is slow to import

    among = compared(runs) if compare else ()
    return [*among, *(against_baseline(runs, baselines) if baselines else ())]


def tell_in_order(runs: Sequence[ReplayedRun], policies: Sequence[SinkPolicy]) -> None:
    """Decide what the sinks would have heard of the runs; see `retold`."""
    incidents = (incident for run in runs for incident in run.incidents.values())
    known = known_incidents(incidents, [run.tracker for run in runs])
    stories = [(run.tracker.described(), run.changes) for run in runs]
    for run, told in zip(runs, retold(stories, Audience(policies, (), {}, known)), strict=True):
        run.told = told
