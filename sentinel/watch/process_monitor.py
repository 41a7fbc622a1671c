"""Follows the processes that write the logs under watch, and says how they ended as soon as they did."""

import math
import resource
import select
from collections.abc import Callable, Collection, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path

from sentinel.common.clock import Clock
from sentinel.config.file import ProcessConfig
from sentinel.detectors.run_checks import HangDiagnosis, Writer
from sentinel.processes.alarm import Alarm
from sentinel.processes.description import described, process_of, title
from sentinel.processes.devices import devices
from sentinel.processes.exits import Exit, opened
from sentinel.processes.finder import SHELLS, Found, Host
from sentinel.processes.hang_sampling import HangSampling
from sentinel.processes.kernel_log import xids
from sentinel.processes.pid_files import named
from sentinel.processes.printed import output_files, printed_last
from sentinel.processes.ranks import Rank, Roster
from sentinel.processes.resources import full, shortages
from sentinel.processes.write_rate import WriteRate
from sentinel.runs.end_inference import infer_end
from sentinel.runs.preemption import ENDS_FROM_OUTSIDE
from sentinel.sources.base import Ending, EndKind
from sentinel.watch.watched import WatchedRun
from sentinel.watch.writer_process import FIRST_PAUSE_SECONDS, WriterProcess

_MAX_PAUSE_SECONDS = 600.0  # between two searches for the process of a run
_MIN_SECONDS = 1.0  # between two looks at the processes ...
_CPU_QUOTA = 0.01  # ... which may take this share of a core; so may asking all what they have open
_FRESH_SECONDS = 60.0  # a look at all processes counts for this long
_MEET_SECONDS = 30.0  # between two searches for further ranks
_GOES_ON_SECONDS = 60.0  # a log that grows this long after the death of a rank does not need the rank
_EXAMINED_SECONDS = 600.0  # a run is examined at most once in this time
_MAX_HANDLES = resource.getrlimit(resource.RLIMIT_NOFILE)[0] // 2  # each is an open descriptor


class ProcessMonitor:
    """The processes of the runs of one watcher."""

    def __init__(self, clock: Clock, allowed: ProcessConfig) -> None:
        self._clock = clock
        self._allowed = allowed
        self._behind: dict[str, WriterProcess] = {}  # by run id
        self._alarm: Alarm | None = None
        self._ring: Callable[[], None] = lambda: None
        self._host: Host | None = None
        self._roster: Roster | None = None
        self._host_at = self._next_at = self._ask_all_at = -math.inf

    @contextmanager
    def alarmed(self, ring: Callable[[], None]) -> Iterator[None]:
        """Surround a watch in which the end of a process or of an examination calls ``ring``, on Linux."""
        self._ring = ring
        if not hasattr(select, "epoll"):
            yield
            return
        with Alarm(ring) as self._alarm:
            yield
        self._alarm = None

    def seek(self, runs: Collection[WatchedRun], awake: float) -> None:
        """Find the processes of the runs that have none yet, where it is time to look again.

        What is known of other runs, which are let go of, is forgotten.
        """
        ids = {watched.run_pipeline.id for watched in runs}
        self._behind = {id_: kept for id_, kept in self._behind.items() if id_ in ids}
        due = []
        for watched in runs:
            if (path := _sought(watched)) is None:
                continue
            behind = self._behind.setdefault(watched.run_pipeline.id, WriterProcess(awake))
            if behind.handle is not None:
                behind.observe(watched, awake)
                continue
            if behind.growth is not None and behind.grown_at != watched.arrived_at:
                behind.grown_at = watched.arrived_at
                self._follow(behind, behind.growth.refresh())
            new = behind.pause == FIRST_PAUSE_SECONDS  # such a log can be found among the young processes
            if behind.handle is None and awake >= behind.search_at and (new or awake >= self._ask_all_at):
                due.append((path, behind))
        if due and awake >= self._next_at:
            self._search(due, awake)
        self._meet(awake)

    def ended(self, runs: Iterable[WatchedRun]) -> list[tuple[WatchedRun, str, Ending | None]]:
        """Return the runs whose processes have ended since, in words, and how; None where that is not
        known.
        """
        ended = []
        for watched in runs:
            behind = self._behind.get(watched.run_pipeline.id)
            handle = behind.handle if behind else None
            if behind is None or handle is None or (how := handle.exit()) is None:
                continue
            words = f"{title(handle.process)} {how.words}"
            behind.team.refresh(self._clock.monotonic())
            culprit = behind.team.culprit()
            if culprit is not None and (how.signal in ENDS_FROM_OUTSIDE or how.status):
                how = culprit.exit
                words = culprit.words
            behind.found = behind.handle = behind.growth = None
            # it may go on in another one
            behind.search_at = -math.inf
            behind.pause = FIRST_PAUSE_SECONDS
            ending = _ending(how, words)
            if how.status and (said := printed_last(behind.output, Host())) is not None:
                output, last = said
                watched.run_pipeline.log.metadata.output = str(output)
                words = f"{words}; {last.evidence}"
                ending = replace(ending, outcome=last.outcome, evidence=words) if ending else None
            if ending is not None and ending.outcome is EndKind.CRASHED:
                met = [_full(watched), xids(handle.process) if self._allowed.devices else ""]
                ending = replace(ending, evidence="; ".join(filter(None, [words, *met])))
            ended.append((watched, words, ending))
        return ended

    def news(self, runs: Iterable[WatchedRun], awake: float) -> list[WatchedRun]:
        """Return the runs of which ranks died since, or of which it is known by now where their ranks
        stand.
        """
        changed = []
        for watched in runs:
            if (behind := self._behind.get(watched.run_pipeline.id)) is None:
                continue
            examined = not behind.reported and behind.examination and behind.examination.result() is not None
            if behind.team.refresh(awake) or examined:
                behind.reported |= bool(examined)
                changed.append(watched)
        return changed

    def dead_rank(self, watched: WatchedRun) -> str | None:
        """Say which rank died while others live; empty if none did, None if the ranks are not known."""
        behind = self._behind.get(watched.run_pipeline.id)
        if behind is None or not behind.team.ranks:
            return None
        death = behind.team.culprit()
        goes_on = death is not None and watched.arrived_at > death.at + _GOES_ON_SECONDS
        return "" if goes_on else behind.team.news(self._clock.monotonic())

    def ranks(self, watched: WatchedRun) -> int:
        """Return how many ranks a run has on all machines; 0 if they are not known."""
        behind = self._behind.get(watched.run_pipeline.id)
        return next((rank.world for rank in behind.team.ranks.values()), 0) if behind else 0

    def shortages(self, watched: WatchedRun) -> str:
        """Return what the machine of a run is short of; empty for one that lies elsewhere."""
        behind = self._behind.get(watched.run_pipeline.id)
        path = watched.run_pipeline.log.run.path
        writer = behind.handle.process if behind and behind.handle else None
        return shortages(path, writer) if isinstance(path, Path) else ""

    def hang_diagnosis(self, watched: WatchedRun) -> HangDiagnosis | None:
        """Return where the ranks of a silent run stand; None while that is being found out."""
        behind = self._behind.get(watched.run_pipeline.id)
        points = watched.run_pipeline.log.metadata.points
        path = watched.run_pipeline.log.run.path
        allowed = self._allowed
        if behind is None or behind.handle is None or allowed.stacks is False:
            return HangDiagnosis()
        awake = self._clock.monotonic()
        if behind.examined[0] != points and awake - behind.examined[1] >= _EXAMINED_SECONDS:
            ranks = behind.team.living or [Rank(behind.handle.process, 0, 1)]
            gone = behind.team.news(awake).partition(". ")[0]
            ask = partial(devices, ranks, path) if allowed.devices and isinstance(path, Path) else str
            behind.examination = HangSampling(ranks, gone, allowed.stacks is True, self._ring, ask)
            behind.examined = (points, awake)
            behind.reported = False
        return (
            behind.examination.result()
            if behind.examination and behind.examined[0] == points
            else HangDiagnosis()
        )

    def process(self, watched: WatchedRun) -> Writer:
        """Return what is known of the process that writes the log of a run."""
        log = watched.run_pipeline.log
        behind = self._behind.setdefault(watched.run_pipeline.id, WriterProcess(self._clock.monotonic()))
        if behind.handle is not None and behind.found is not None:
            told = described(behind.found)
            does = behind.does(log.metadata.points, self._clock.monotonic())
            return replace(told, text=f"{told.text}; {does}") if told.lives is not False and does else told
        if log.metadata.process_gone:
            return Writer(log.metadata.process_gone, lives=False)
        if not isinstance(log.run.path, Path):
            return Writer()
        awake = self._clock.monotonic()
        if self._host is None or awake - self._host_at > _FRESH_SECONDS:
            self._scan(awake)
        if self._host is not None:
            told = process_of(log.run.path, self._host)
            probable = behind.growth.probable() if behind.growth and not told.text else None
            return described(probable) if probable else told
        return Writer()

    def _search(self, due: Iterable[tuple[Path, WriterProcess]], awake: float) -> None:
        """Look for the processes of some runs: among all, or while that costs too much, among young ones."""
        host = self._scan(awake)
        begun = self._clock.cpu_seconds()
        all_ = awake >= self._ask_all_at
        for path, behind in due:
            writer = (host.writer(path) or named(path)) if all_ else host.young.writer(path)
            if isinstance(writer, Found) and writer.process.name not in SHELLS:
                self._follow(behind, writer)
            elif behind.growth is None or behind.growth.over:
                behind.growth = WriteRate(path, host if all_ else host.young)
            if all_:
                behind.search_at = awake + behind.pause
                behind.pause = min(2 * behind.pause, _MAX_PAUSE_SECONDS)
        if all_:
            self._ask_all_at = self._rest(begun, awake)
        else:
            self._next_at = max(self._next_at, self._rest(begun, awake))

    def _scan(self, awake: float) -> Host:
        """Look at all processes of this machine, without asking what they have open."""
        begun = self._clock.cpu_seconds()
        self._host = Host()
        self._host_at = awake
        self._next_at = self._rest(begun, awake)
        return self._host

    def _rest(self, begun: float, awake: float) -> float:
        """Return the time awake until which what was begun is not done again."""
        return awake + max(_MIN_SECONDS, (self._clock.cpu_seconds() - begun) / _CPU_QUOTA)

    def _meet(self, awake: float) -> None:
        """Look for the ranks of the runs whose processes are known, now and then."""
        due = [run for run in self._behind.values() if run.handle is not None and awake >= run.meet_at]
        if not due or (awake < self._next_at and awake > self._host_at):
            return
        begun = self._clock.cpu_seconds()
        host = self._host if self._host is not None and self._host_at == awake else self._scan(awake)
        handles = self._handles()
        self._roster = Roster(host.processes, self._roster)
        for behind in due:
            behind.meet_at = awake + _MEET_SECONDS
            if behind.handle is None:
                continue
            behind.handle.count_kills()
            if handles < _MAX_HANDLES:
                handles -= len(behind.team.descriptors)
                behind.team.meet(self._roster.ranks_of(behind.handle.process))
                handles += len(behind.team.descriptors)
                self._set_alarm(behind.team.descriptors)
        self._next_at = max(self._next_at, self._rest(begun, awake))

    def _handles(self) -> int:
        return sum(len(run.team.descriptors) + (run.handle is not None) for run in self._behind.values())

    def _follow(self, behind: WriterProcess, writer: Found | None) -> None:
        """Keep a handle of the process that was found."""
        if writer is None or self._handles() >= _MAX_HANDLES:
            return
        handles = (other.handle for other in self._behind.values() if other.handle is not None)
        same = (known for known in handles if known.process[:2] == writer.process[:2])
        if (handle := next(same, None) or opened(writer.process)) is not None:
            behind.found = writer
            behind.handle = handle
            behind.growth = None
            behind.output = output_files(writer.process)
            self._set_alarm([handle.descriptor])

    def _set_alarm(self, descriptors: Iterable[int]) -> None:
        if self._alarm is not None:
            for descriptor in descriptors:
                self._alarm.set(descriptor)


def note(watched: WatchedRun, words: str, ending: Ending | None) -> None:
    """Note that the process of a run ended, and how; call it when the log was read to its end after that."""
    log = watched.run_pipeline.log
    infer_end(log, math.inf)
    told = log.metadata.last_words
    if ending is not None and told is not None and told.outcome is EndKind.CRASHED:
        known = told.evidence in ending.evidence
        ending = ending if known else replace(ending, evidence=f"{ending.evidence}; {told.evidence}")
    log.metadata.exit = ending
    log.metadata.process_gone = "" if ending else f"{words}, and how is not known"
    watched.uncommitted += 1


def _sought(watched: WatchedRun) -> Path | None:
    """Return the path of a run whose process matters; None if the run is over or lies elsewhere."""
    log = watched.run_pipeline.log
    over = watched.past or log.ending is not None or not watched.looked_at
    return log.run.path if isinstance(log.run.path, Path) and not over else None


def _full(watched: WatchedRun) -> str:
    """Return what a training may have failed for: file systems without room."""
    path = watched.run_pipeline.log.run.path
    return full(path) if isinstance(path, Path) else ""


def _ending(how: Exit, words: str) -> Ending | None:
    if how.signal is not None:
        outside = how.signal in ENDS_FROM_OUTSIDE
        return Ending(EndKind.PREEMPTED if outside else EndKind.CRASHED, words, exited=True)
    if how.status is None:
        return None
    return Ending(EndKind.CRASHED if how.status else EndKind.FINISHED, words, exited=True)
