"""Follows the processes that write the logs under watch, and says how they ended as soon as they did."""

import math
import resource
import select
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import NamedTuple

from msgspec.structs import replace

from sentinel.common.clock import Clock
from sentinel.config.file import ProcessConfig
from sentinel.detectors.run_checks import HangDiagnosis, Writer
from sentinel.processes.alarm import Alarm
from sentinel.processes.description import describe, describe_writer, title
from sentinel.processes.exits import Exit, open_handle
from sentinel.processes.finder import SHELLS, Host, LogWriter
from sentinel.processes.hang_sampling import HangSampling, describe_devices
from sentinel.processes.kernel_log import xids
from sentinel.processes.pid_files import find_named_process
from sentinel.processes.printed import output_files, printed_end
from sentinel.processes.ranks import Rank, Roster
from sentinel.processes.resources import full, shortages
from sentinel.processes.table import Process, directory, process, rank_keys
from sentinel.processes.write_rate import WriteRate
from sentinel.runs.end_inference import infer_end
from sentinel.runs.preemption import ENDS_FROM_OUTSIDE
from sentinel.runs.state import is_gone
from sentinel.sources.base import Ending, EndKind
from sentinel.watch.watched import WatchedRun
from sentinel.watch.writer_process import FIRST_PAUSE_SECONDS, WriterProcess

_MAX_PAUSE_SECONDS = 600.0  # between two searches for the process of a run
_MIN_REST_SECONDS = 1.0  # between two scans of the processes ...
_CPU_QUOTA = 0.01  # ... which may take this share of a core; so may asking all what they have open
_SCAN_VALID_SECONDS = 60.0  # how long a scan of all processes counts
_MEET_SECONDS = 30.0  # between two searches for further ranks
_CONTINUES_SECONDS = 60.0  # a log that grows this long after the death of a rank does not need the rank
_SAMPLING_SECONDS = 600.0  # the stacks of a run are sampled at most once in this time
_RANK_NUMBERS = frozenset(("RANK", "OMPI_COMM_WORLD_RANK", "PMI_RANK"))
"""Variables that only what a launcher of ranks started has; Slurm sets its own for whole scripts."""

_MAX_HANDLES = resource.getrlimit(resource.RLIMIT_NOFILE)[0] // 2  # each is an open descriptor


class ProcessEnd(NamedTuple):
    """The end of the process of a run, in words, and how it ended; None where that is not known."""

    watched: WatchedRun
    words: str
    ending: Ending | None
    process: tuple[object, ...]  # which several logs may share


class ProcessMonitor:
    """The processes of the runs of one watcher."""

    def __init__(self, clock: Clock, config: ProcessConfig) -> None:
        self._clock = clock
        self._config = config
        self._writers: dict[str, WriterProcess] = {}  # by run id
        self._alarm: Alarm | None = None
        self._ring: Callable[[], None] = lambda: None
        self._host: Host | None = None
        self._host_at = -math.inf
        self._roster: Roster | None = None
        self._scan_at = -math.inf  # from when on the processes may be scanned again
        self._ask_all_at = -math.inf  # from when on all processes may be asked what they have open

    @contextmanager
    def alarmed(self, ring: Callable[[], None]) -> Iterator[None]:
        """Surround a watch in which the end of a process or of a sampling calls ``ring``, on Linux."""
        self._ring = ring
        if not hasattr(select, "epoll"):
            yield
            return
        with Alarm(ring) as self._alarm:
            yield
        self._alarm = None

    def seek(self, runs: Collection[WatchedRun], awake: float) -> None:
        """Find the processes of the runs that have none yet, where another search is due.

        What is known of all other runs is forgotten.
        """
        ids = {watched.run_pipeline.id for watched in runs}
        self._writers = {run_id: writer for run_id, writer in self._writers.items() if run_id in ids}
        due = []
        for watched in runs:
            path = _path_to_search(watched)
            if path is None:
                continue
            writer = self._writers.setdefault(watched.run_pipeline.id, WriterProcess(awake))
            if writer.handle is not None:
                writer.note(watched)
                writer.observe(watched, awake)
                continue
            if writer.write_rate is not None and writer.write_rate_at != watched.arrived_at:
                writer.write_rate_at = watched.arrived_at
                self._follow_writer(writer, writer.write_rate.refresh())
            # a log that was not searched for yet can be found among the young processes
            is_new = writer.pause_seconds == FIRST_PAUSE_SECONDS
            may_search = awake >= writer.search_at and (is_new or awake >= self._ask_all_at)
            if writer.handle is None and may_search:
                due.append((path, writer))
        if due and awake >= self._scan_at:
            self._search(due, awake)
        self._meet(awake)

    def ended(self, runs: Iterable[WatchedRun]) -> list[ProcessEnd]:
        """Return the ends of the processes of runs since the last call."""
        ends = []
        for watched in runs:
            writer = self._writers.get(watched.run_pipeline.id)
            handle = writer.handle if writer else None
            how = handle.exit() if handle else None
            if writer is None or handle is None or how is None:
                continue
            words = f"{title(handle.process)} {how.words}"
            writer.team.refresh(self._clock.monotonic())
            culprit = writer.team.culprit()
            if culprit is not None and (how.signal in ENDS_FROM_OUTSIDE or how.status):
                how = culprit.exit
                words = culprit.words
            writer.forget()
            ending = _process_ending(how, words)
            output_end = printed_end(writer.output, Host()) if how.status else None
            if output_end is not None:
                output, last = output_end
                watched.run_pipeline.log.metadata.output = str(output)
                words = f"{words}; {last.evidence}"
                ending = replace(ending, outcome=last.outcome, evidence=words) if ending else None
            if ending is not None and ending.outcome is EndKind.CRASHED:
                path = watched.run_pipeline.log.run.path
                gone = f"{path} is gone" if is_gone(path) else ""
                disks = full(path) if isinstance(path, Path) else ""
                gpus = xids(handle.process) if self._config.devices else ""
                ending = replace(ending, evidence="; ".join(filter(None, [words, gone, disks, gpus])))
            ends.append(ProcessEnd(watched, words, ending, handle.process[:2]))
        return ends

    def news(self, runs: Iterable[WatchedRun], awake: float) -> list[WatchedRun]:
        """Return the runs of which ranks died since, or of which a hang diagnosis is ready."""
        changed = []
        for watched in runs:
            writer = self._writers.get(watched.run_pipeline.id)
            if writer is None:
                continue
            unreported = writer.sampling if not writer.reported else None
            is_ready = unreported is not None and unreported.result() is not None
            if writer.team.refresh(awake) or is_ready:
                writer.reported |= is_ready
                changed.append(watched)
        return changed

    def dead_rank(self, watched: WatchedRun) -> str | None:
        """Say which rank died while others live; empty if none did, None if no live rank is known."""
        writer = self._writers.get(watched.run_pipeline.id)
        if writer is None or not writer.team.living:
            return None
        death = writer.team.culprit()
        continues = death is not None and watched.arrived_at > death.at + _CONTINUES_SECONDS
        return "" if continues else writer.team.news(self._clock.monotonic())

    def ranks(self, watched: WatchedRun) -> int:
        """Return how many ranks a run has on all machines; 0 if they are not known."""
        writer = self._writers.get(watched.run_pipeline.id)
        return next((rank.world for rank in writer.team.ranks.values()), 0) if writer else 0

    def shortages(self, watched: WatchedRun) -> str:
        """Return what the machine of a run is short of; empty for one that lies elsewhere."""
        writer = self._writers.get(watched.run_pipeline.id)
        path = watched.run_pipeline.log.run.path
        process = writer.handle.process if writer and writer.handle else None
        return shortages(path, process) if isinstance(path, Path) else ""

    def hang_diagnosis(self, watched: WatchedRun) -> HangDiagnosis | None:
        """Return where the ranks of an inactive run are; None while they are sampled."""
        writer = self._writers.get(watched.run_pipeline.id)
        points = watched.run_pipeline.log.metadata.points
        path = watched.run_pipeline.log.run.path
        config = self._config
        if writer is None or writer.handle is None or config.stacks is False:
            return HangDiagnosis()
        awake = self._clock.monotonic()
        if writer.sampling_points != points and awake - writer.sampling_at >= _SAMPLING_SECONDS:
            ranks = writer.team.living or [Rank(writer.handle.process, 0, 1)]
            death = writer.team.news(awake).partition(". ")[0]
            devices = (
                partial(describe_devices, ranks, path) if config.devices and isinstance(path, Path) else str
            )
            writer.sampling = HangSampling(ranks, death, config.stacks is True, self._ring, devices)
            writer.sampling_points = points
            writer.sampling_at = awake
            writer.reported = False
        is_current = writer.sampling is not None and writer.sampling_points == points
        return writer.sampling.result() if writer.sampling and is_current else HangDiagnosis()

    def process(self, watched: WatchedRun) -> Writer:
        """Return what is known of the process that writes the log of a run."""
        log = watched.run_pipeline.log
        awake = self._clock.monotonic()
        writer = self._writers.setdefault(watched.run_pipeline.id, WriterProcess(awake))
        if writer.handle is not None and writer.log_writer is not None:
            description = describe(writer.log_writer)
            does = writer.does(log.metadata.points, awake)
            if description.lives is False or not does:
                return description
            return replace(description, text=f"{description.text}; {does}")
        if log.metadata.process_gone:
            return Writer(log.metadata.process_gone, lives=False)
        if not isinstance(log.run.path, Path):
            return Writer()
        is_recent = self._host is not None and awake - self._host_at <= _SCAN_VALID_SECONDS
        host = self._host if self._host is not None and is_recent else self._scan_processes(awake)
        description = describe_writer(log.run.path, host)
        probable = writer.write_rate.probable() if writer.write_rate and not description.text else None
        return describe(probable) if probable else description

    def _search(self, due: Iterable[tuple[Path, WriterProcess]], awake: float) -> None:
        """Search for the processes of some runs among all, or while that costs too much, among young ones."""
        host = self._scan_processes(awake)
        cpu_before = self._clock.cpu_seconds()
        asks_all = awake >= self._ask_all_at
        for path, writer in due:
            match = (host.writer(path) or find_named_process(path)) if asks_all else host.young.writer(path)
            if isinstance(match, LogWriter) and match.process.name not in SHELLS:
                self._follow_writer(writer, match)
            elif writer.write_rate is None or writer.write_rate.over:
                writer.write_rate = WriteRate(path, host if asks_all else host.young)
            if asks_all:
                writer.search_at = awake + writer.pause_seconds
                writer.pause_seconds = min(2 * writer.pause_seconds, _MAX_PAUSE_SECONDS)
        if asks_all:
            self._ask_all_at = self._rest_until(cpu_before, awake)
        else:
            self._scan_at = max(self._scan_at, self._rest_until(cpu_before, awake))

    def _scan_processes(self, awake: float) -> Host:
        """List all processes of this machine, without asking what they have open."""
        cpu_before = self._clock.cpu_seconds()
        self._host = Host()
        self._host_at = awake
        self._scan_at = self._rest_until(cpu_before, awake)
        return self._host

    def _rest_until(self, cpu_before: float, awake: float) -> float:
        """Return the time awake until which the work since ``cpu_before`` is not done again."""
        return awake + max(_MIN_REST_SECONDS, (self._clock.cpu_seconds() - cpu_before) / _CPU_QUOTA)

    def _meet(self, awake: float) -> None:
        """Search for the ranks of the runs whose processes are known, now and then."""
        due = [writer for writer in self._writers.values() if writer.is_to_meet(awake)]
        if not due or (awake < self._scan_at and awake > self._host_at):
            return
        cpu_before = self._clock.cpu_seconds()
        host = (
            self._host if self._host is not None and self._host_at == awake else self._scan_processes(awake)
        )
        handles = self._handle_count()
        self._roster = Roster(host.processes, self._roster)
        for writer in due:
            writer.meet_at = awake + _MEET_SECONDS
            if writer.handle is None:
                continue
            writer.handle.count_kills()
            if handles < _MAX_HANDLES:
                handles -= len(writer.team.descriptors)
                writer.team.meet(self._roster.ranks_of(writer.handle.process))
                handles += len(writer.team.descriptors)
                self._set_alarm(writer.team.descriptors)
        self._scan_at = max(self._scan_at, self._rest_until(cpu_before, awake))

    def _handle_count(self) -> int:
        return sum(writer.handle_count for writer in self._writers.values())

    def _follow_writer(self, writer: WriterProcess, match: LogWriter | None) -> None:
        """Keep a handle of the process that writes a log."""
        if match is None or self._handle_count() >= _MAX_HANDLES:
            return
        handles = (other.handle for other in self._writers.values() if other.handle is not None)
        same = (handle for handle in handles if handle.process[:2] == match.process[:2])
        handle = next(same, None) or open_handle(match.process)
        if handle is not None:
            writer.log_writer = match
            writer.handle = handle
            writer.write_rate = None
            writer.output = output_files(match.process)
            writer.names = _process_names(match.process)
            writer.working_directory = str(directory(match.process.pid) or "")
            self._set_alarm([handle.descriptor])

    def _set_alarm(self, descriptors: Iterable[int]) -> None:
        if self._alarm is not None:
            for descriptor in descriptors:
                self._alarm.set(descriptor)


def _process_names(target: Process) -> Sequence[str]:
    """Return what identifies a process on this machine and, for a rank, the one that launched all ranks."""
    launcher = process(target.parent) if rank_keys(target.pid).keys() & _RANK_NUMBERS else None
    both = (target, launcher if launcher is not None and launcher.name not in SHELLS else None)
    return [f"{process.pid} since {process.started}" for process in both if process is not None]


def note_end(end: ProcessEnd, ends: Iterable[ProcessEnd]) -> None:
    """Note that the process of a run ended, and how; call it when the log was read to its end after that.

    ``ends`` are those of all processes that ended with it.
    """
    watched, words, ending, process = end
    log = watched.run_pipeline.log
    same = (other.watched.run_pipeline.log.metadata for other in ends if other.process == process)
    steps = [metadata.last_step for metadata in same if metadata.last_step is not None]
    log.metadata.step_elsewhere = max(steps, default=None)
    infer_end(log, math.inf)
    marker = log.metadata.last_words
    if ending is not None and marker is not None and marker.outcome is EndKind.CRASHED:
        is_cited = marker.evidence in ending.evidence
        evidence = ending.evidence if is_cited else f"{ending.evidence}; {marker.evidence}"
        ending = replace(ending, evidence=evidence)
    log.metadata.exit = ending
    log.metadata.process_gone = "" if ending else f"{words}, and how is not known"
    watched.uncommitted += 1


def _path_to_search(watched: WatchedRun) -> Path | None:
    """Return the path of a run whose process matters; None if the run is over or lies elsewhere."""
    log = watched.run_pipeline.log
    is_over = watched.past or log.ending is not None or not watched.initial_scan_done
    return log.run.path if isinstance(log.run.path, Path) and not is_over else None


def _process_ending(how: Exit, words: str) -> Ending | None:
    if how.signal is not None:
        outside = how.signal in ENDS_FROM_OUTSIDE
        return Ending(EndKind.PREEMPTED if outside else EndKind.CRASHED, words, exited=True)
    if how.status is None:
        return None
    return Ending(EndKind.CRASHED if how.status else EndKind.FINISHED, words, exited=True)
