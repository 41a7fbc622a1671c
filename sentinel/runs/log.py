"""The log of one run: how far it was read, what it means, and how the run ended."""

import math
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import chain
from typing import Any

import msgspec
from msgspec.structs import replace

from sentinel.catalogue import signatures
from sentinel.common.conversion import converter
from sentinel.detectors.api import Severity
from sentinel.detectors.run_checks import Printed, Stopped
from sentinel.detectors.signals import Signal
from sentinel.runs.beside_rewards import is_beside_rewards
from sentinel.runs.console import ConsoleState
from sentinel.runs.ingested import Ingested
from sentinel.runs.metadata import RunMetadata, Understanding, framework, understood
from sentinel.runs.outcomes import outcome
from sentinel.runs.resumes import resumed_after
from sentinel.runs.state_codec import packed, unpacked
from sentinel.series.attempt import MAX_TAGS_PER_SIGNAL
from sentinel.series.attempts import MAX_ATTEMPTS
from sentinel.series.naming import Naming
from sentinel.series.plan import KnownOfRun, planned
from sentinel.series.roles.outcome import Outcome
from sentinel.series.specs import SeriesSpecs
from sentinel.series.stream import Extension, SeriesRows, Stream
from sentinel.sources.base import Chunk, Cursor, Ending, EndKind, PollResult, ReadIssue, Run, flush, stopped
from sentinel.sources.readers.growing import marks_in
from sentinel.sources.readers.plain import flat
from sentinel.sources.sidecars.config_files import ConfigFiles
from sentinel.sources.sidecars.output_files import Output, OutputFiles

_TOO_MANY_TAGS = "{signal} has more than {most} tags; further ones are left out"
_DISORDERED = (
    f"its steps went back more than {MAX_ATTEMPTS} times, as if several trainings wrote one log; "
    "give each a log of its own"
)
_END_WORDS = {
    EndKind.FINISHED: "finished",
    EndKind.CRASHED: "crashed",
    EndKind.PREEMPTED: "was ended from outside",
}


class RunOverview(msgspec.Struct, frozen=True):
    """What reports show of a run. It can be pickled, and cannot read on."""

    name: str
    path: str
    format: str
    metadata: RunMetadata
    ending: Ending | None
    attempts: int
    understanding: Understanding
    stopped: str | None
    outcome: Outcome | None = None

    @property
    def title(self) -> str:
        """Its name, and what a tracker calls it."""
        return self.metadata.label.beside(self.name)


@dataclass(slots=True)
class RunLog:
    """The log of one run as far as it was read; `dump` and `restore` carry it over a restart.

    ``console`` is None if no detector reads console text; the text is then skipped.
    """

    run: Run
    name: str
    naming: Naming
    specs: SeriesSpecs
    cursor: Cursor = field(default_factory=dict)
    streams: dict[str, Stream] = field(default_factory=dict)
    metadata: RunMetadata = field(default_factory=RunMetadata)
    console: ConsoleState | None = None
    reached_end: bool = False  # it was read to its end once
    live: bool = False  # it grew after that
    _config_files: ConfigFiles = field(init=False)
    _beside_rewards: bool | None = field(default=None, init=False)  # None: not looked yet
    _output: Output | None = field(default=None, init=False)  # read by `poll`, not ingested yet

    def __post_init__(self) -> None:
        self._config_files = ConfigFiles(self.run)

    @property
    def title(self) -> str:
        """Its name, and what a tracker calls it."""
        return self.metadata.label.beside(self.name)

    def poll(self, limit: int) -> PollResult:
        """Read what is new, at most about ``limit`` points, for `ingest`."""
        if self.console is not None and self._output is None:
            # Before the points, so that everything logged before these lines is known with them.
            self._output = OutputFiles(self.run).poll(self.console.cursor)
        return self.run.source.poll(self.cursor, limit)

    def ingest(self, batch: PollResult, read_at: float = math.nan) -> Ingested:
        """Add what a poll read. ``read_at`` is the time awake of a watch."""
        readability_changed = stopped(self.cursor) != stopped(batch.cursor)
        if self.run.local is not None and "mark" in self.cursor:
            heads = {mark["head"] for mark in marks_in(batch.cursor)}
            self.metadata.put_aside([mark for mark in marks_in(self.cursor) if mark["head"] not in heads])
        self.cursor = batch.cursor
        self.metadata.record(flat(batch.config), self.run.format)
        self.metadata.plan |= planned(batch.config)
        self.metadata.label = self.metadata.label.updated(batch.label)
        points_before = self.metadata.points
        stopped_before = {*self._stopped()}
        resumes = [*resumed_after(batch.lines)]
        for stream in {*self.streams, *(chunk.stream for chunk in batch.chunks)} if resumes else ():
            self._stream(stream).attempts.resumes += resumes
        read_issues = [*batch.read_issues]
        extensions: list[Extension] = []
        for chunk in (chunk.flat for chunk in batch.chunks):
            extension, config_issues = self._add_chunk(chunk, read_at)
            extensions.append(extension)
            read_issues += config_issues
        grew = self.metadata.points > points_before
        if batch.ending or grew:
            self.metadata.logged_ending = batch.ending
        self.live = self.live or (grew and self.reached_end)
        self.reached_end = self.reached_end or not batch.more
        printed, prints_more = (
            self._scan_console(self.console, batch) if self.console is not None else ([], False)
        )
        return Ingested(
            rows=[rows for extension in extensions for rows in extension.rows],
            chunks=batch.chunks,
            more=batch.more or prints_more,
            printed=printed,
            stopped=[stop for stop in self._stopped() if stop not in stopped_before],
            inventories=[inventory for extension in extensions for inventory in extension.inventories],
            absences=[absence for extension in extensions for absence in extension.absences],
            read_issues=read_issues,
            readability_changed=readability_changed,
        )

    def _add_chunk(self, chunk: Chunk, read_at: float) -> tuple[Extension, Sequence[ReadIssue]]:
        """Add a chunk to its stream. Return what it brought, and configuration files that cannot be read."""
        stream = self._stream(chunk.stream)
        read_issues: Sequence[ReadIssue] = ()
        if len(chunk.step):
            if not stream.has_points:
                stream.plans.first, read_issues = self._plan_at(float(chunk.time[0]))
                stream_before = self._stream_before(chunk)
                if stream_before is not None:
                    stream.resume(stream_before)
            self.metadata.undo_finalize(chunk)
        self.metadata.record(flat(chunk.config), self.run.format)
        return stream.extend(chunk, read_at), read_issues

    def _scan_console(self, console: ConsoleState, batch: PollResult) -> tuple[list[Printed], bool]:
        """Scan new console output for errors. Return what was found, and whether unread output is left.

        Files beside the log are scanned after all points that precede them.
        """
        scans = [console.scan("", batch.lines, signatures())] if batch.lines else []
        is_unread = False
        if not batch.more and self._output is not None:
            scans += [console.scan_text(name, text, signatures()) for name, text in self._output.text.items()]
            is_unread = self._output.more
            console.cursor = dict(self._output.cursor)
            self._output = None
        printed = [*chain.from_iterable(scans)]
        for line in printed:
            if line.severity is Severity.CLEAN:
                self.metadata.logged_ending = None
            elif self.metadata.logged_ending is None and (line.preempted or line.location):
                outcome = EndKind.PREEMPTED if line.preempted else EndKind.CRASHED
                self.metadata.logged_ending = Ending(outcome, f"it printed {line.text!r}", inferred=True)
        return printed, is_unread

    def _plan_at(self, begin: float) -> tuple[dict[str, float], Sequence[ReadIssue]]:
        """Return the plan of a stream whose first point has this time, and the files that cannot be read.

        A file counts only if it was there by that time and did not change since, because only then it says
        the same whenever the log is read, or if its name says so where copying took its time away. The time
        of a log without times is NaN.
        """
        files, read_issues = self._config_files.read()
        plan: dict[str, float] = {}
        for file in reversed(files):
            config = self.metadata.config
            logged = {key for key, setting in config.items() if setting.origin == self.run.format}
            settings = {key: value for key, value in file.settings.items() if key not in logged}
            self.metadata.record(settings, file.name)
            if self._config_files.precedes(file, begin):
                plan |= planned(file.settings)
        return plan | self.metadata.plan, read_issues

    @property
    def ending(self) -> Ending | None:
        """How the run ended; None if its log does not say that it ended."""
        ending = self.metadata.ending(self.planned_steps)
        line = self.console.preempted if self.console is not None else ""
        if ending is not None and ending.outcome is EndKind.CRASHED and line:
            return Ending(EndKind.PREEMPTED, f"it printed {line!r}", ending.inferred)
        return ending

    @property
    def end(self) -> str:
        """How the run ended, as a sentence; empty if that is not known."""
        ending = self.ending
        if ending is None:
            return ""
        step = "" if self.metadata.last_step is None else f" at step {self.metadata.last_step:,}"
        return f"the run {_END_WORDS[ending.outcome]}{step} ({ending.evidence})"

    @property
    def known(self) -> KnownOfRun:
        """What the log says so far, for rules about the run as a whole."""
        return KnownOfRun(tuple(stream.known for stream in self.streams.values()))

    @property
    def planned_steps(self) -> float | None:
        """The planned last step; None if the streams state none, or not the same."""
        plans = {stream.planned_steps for stream in self.streams.values()}
        return plans.pop() if len(plans) == 1 else None

    @property
    def stopped(self) -> str | None:
        """Why the rest of the log is not judged; None if it is."""
        return next((stop.reason for stop in self._stopped() if not stop.signal), None) or self.unreadable

    @property
    def unreadable(self) -> str | None:
        """Why nothing more can be read of the log; None if it can be read."""
        return stopped(self.cursor)

    def _stopped(self) -> Iterator[Stopped]:
        """Yield the streams that are no longer judged, and the signals with tags that are left out."""
        for name, stream in self.streams.items():
            if stream.attempts.disordered_at is not None:
                step, time = stream.attempts.disordered_at
                yield Stopped(name, step, None if math.isnan(time) else time, _DISORDERED)
            for signal, (step, time) in stream.attempt.left_out.items():
                reason = _TOO_MANY_TAGS.format(signal=signal, most=MAX_TAGS_PER_SIGNAL)
                yield Stopped(name, step, None if math.isnan(time) else time, reason, signal)

    def _stream(self, name: str) -> Stream:
        """Return the stream of that name, created if it is new."""
        if name not in self.streams:
            self.streams[name] = self._new_stream(name)
        return self.streams[name]

    def _stream_before(self, chunk: Chunk) -> Stream | None:
        """Return the stream that the first points of a new one resume: the newest of its directory, if all
        that was read so far was logged before.
        """
        last_time = self.metadata.last_time
        if self.run.has_parallel_streams or chunk.label or last_time is None or not chunk.time[0] > last_time:
            return None
        directory = chunk.stream.rpartition("/")[0]
        others = [
            name
            for name, stream in self.streams.items()
            if name != chunk.stream and stream.has_points and name.rpartition("/")[0] == directory
        ]
        return self.streams[others[-1]] if others else None

    def _new_stream(self, name: str) -> Stream:
        run = self.run
        first = self.streams.get(name.rpartition(":")[0])
        is_beside_reward = first is not None and Signal.REWARD in first.signals
        is_beside_reward |= self._stands_beside_rewards()
        return Stream(
            run.id,
            name,
            run.format,
            run.part,
            self.naming,
            self.specs,
            is_beside_others=first is not None or run.is_one_of_several,
            is_beside_reward=is_beside_reward,
        )

    def _stands_beside_rewards(self) -> bool:
        """Return whether a file of rewards lies beside the log. One look is enough for all streams."""
        if self._beside_rewards is None:
            self._beside_rewards = self.run.local is not None and is_beside_rewards(self.run.local)
        return self._beside_rewards

    @property
    def no_clock(self) -> str:
        """What the log lacks to show how long a tag was not logged; empty if it lacks nothing."""
        if self.metadata.last_time is None:
            return "times"
        if all(len(stream.meanings) < 2 for stream in self.streams.values()):
            return "other tags in the same file"
        return ""

    @property
    def attempts(self) -> int:
        """How often training began or was resumed, as far as the log shows."""
        counts: Counter[str] = Counter()  # of streams that follow one another, by directory
        for name, stream in self.streams.items():
            directory = name if self.run.has_parallel_streams else name.rpartition("/")[0]
            counts[directory] += stream.attempts.number if stream.has_points else 0
        return max(counts.values(), default=0)

    def understanding(self) -> Understanding:
        """Return the framework, the signals and the unmapped tags of all streams."""
        return understood(self.streams.values())

    def overview(self) -> RunOverview:
        """Return the run as reports show it."""
        return RunOverview(
            name=self.name,
            path=str(self.run.path),
            format=self.run.format,
            metadata=self.metadata,
            ending=self.ending,
            attempts=self.attempts,
            understanding=self.understanding(),
            stopped=self.stopped,
            outcome=self.outcome(),
        )

    def outcome(self) -> Outcome | None:
        """Return the series by which a reader judges the run; None if it has none."""
        return outcome(self.streams.values())

    def flush(self) -> Ingested:
        """Return the rows to judge when the log is over, and the points that only its end makes sure.

        The state of the log does not change, because it may continue after all.
        """
        flushed = flush(self.run.source, self.cursor)
        rows: list[SeriesRows] = []
        for name in dict.fromkeys([*self.streams, *(chunk.stream for chunk in flushed)]):
            chunks = [chunk for chunk in flushed if chunk.stream == name]
            stream = self.streams.get(name)
            if stream is None or chunks or not stream.has_names:
                stream = self._copy(name)
            for chunk in chunks:
                rows += stream.extend(chunk).rows
            rows += stream.end()
        return Ingested([replace(series, of_end=True) for series in rows], flushed=flushed)

    def _copy(self, name: str) -> Stream:
        """Copy a stream, or make a new one.

        The end decides what the tags of a short stream mean. If it continues, more tags may decide otherwise.
        """
        copy = self._new_stream(name)
        if name in self.streams:
            copy.restore(unpacked(packed({"stream": self.streams[name].dump()}))["stream"])
        return copy

    def dump(self) -> dict[str, Any]:
        """Return everything that `restore` and `StoredRun` need, for `packed`."""
        return {
            "name": self.name,
            "framework": framework(self.streams.values()),
            "attempts": self.attempts,
            "cursor": self.cursor,
            "streams": {name: stream.dump() for name, stream in self.streams.items()},
            "ending": self.ending,
            "metadata": self.metadata,
            "stopped": self.stopped,
            "planned_steps": self.planned_steps,
            "reached_end": self.reached_end,
            "live": self.live,
            "console": msgspec.to_builtins(self.console),
        }

    def restore(self, state: dict[str, Any]) -> None:
        """Undo `dump`."""
        self.cursor = state["cursor"]
        for name, stream in state["streams"].items():
            self._stream(name).restore(stream)
        self.metadata = _to_metadata(state["metadata"])
        self.reached_end = state["reached_end"]
        self.live = state["live"]
        if self.console is not None:
            self.console = _to_console(state["console"])


class StoredRun(msgspec.Struct):
    """The part of a stored run state that `sentinel status` shows."""

    metadata: RunMetadata = msgspec.field(default_factory=RunMetadata)
    ending: Ending | None = None
    planned_steps: float | None = None
    name: str = ""
    framework: str | None = None
    attempts: int = 0

    @staticmethod
    def from_state(state: dict[str, Any]) -> "StoredRun":
        """Read it from unpacked state. Raises ValueError for a state that this version did not make."""
        return _to_stored_run(state)


_to_stored_run = converter(StoredRun)
_to_metadata = converter(RunMetadata)
_to_console = converter(ConsoleState)
