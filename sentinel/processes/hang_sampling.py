"""Looks twice at the ranks of a training that stands still, beside the watch, which goes on meanwhile."""

import os
import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

from sentinel.detectors.run_checks import HangDiagnosis
from sentinel.processes.description import waits_in
from sentinel.processes.hang_diagnosis import Seen, StackSample, verdict
from sentinel.processes.ranks import LOADER, Rank, is_spawned
from sentinel.processes.stacks import Stack, stack_of
from sentinel.processes.table import Process, arguments, cpu_seconds, lives, process, processes

_APART_SECONDS = 1.0
_MAX_SECONDS = 20.0  # for all dumps
_MAX_WORKERS = 16  # of a rank
_MOST = 64  # processes
_AT_ONCE = 4  # dumps
_ASKED_SECONDS = 5.0  # for what is known of the devices, beside the dumps


class HangSampling:
    """One examination. ``gone`` says that a rank died, in words, and ``others`` whether the stacks of other
    users' processes are looked at, too. ``ring`` is called when the result is there. ``devices`` says what is
    known of the devices, and may take long.
    """

    def __init__(
        self,
        ranks: Sequence[Rank],
        gone: str,
        others: bool,
        ring: Callable[[], None],
        devices: Callable[[], str] = str,
    ) -> None:
        self._ranks = ranks
        self._gone = gone
        self._others = others
        self._ring = ring
        self._devices = devices
        self._late = threading.Event()
        self._dumps = threading.BoundedSemaphore(_AT_ONCE)
        self._found: HangDiagnosis | None = None
        self._thread = threading.Thread(target=self._examine, daemon=True)
        self._thread.start()

    def result(self) -> HangDiagnosis | None:
        """Return the verdict; None while the examination goes on."""
        return None if self._thread.is_alive() and self._found is None else self._found or HangDiagnosis()

    def _examine(self) -> None:
        deadline = threading.Timer(_MAX_SECONDS, self._late.set)
        deadline.start()
        self._found = self._verdict()
        deadline.cancel()
        self._ring()

    def _verdict(self) -> HangDiagnosis:
        known: list[str] = []
        asking = threading.Thread(target=lambda: known.append(self._devices()), daemon=True)
        asking.start()
        standstill = verdict(self._look_twice(), self._gone)
        asking.join(_ASKED_SECONDS)
        return replace(standstill, devices="".join(known))

    def _look_twice(self) -> list[Seen]:
        workers = _workers(self._ranks, processes())
        all_ = [
            *(rank.process for rank in self._ranks),
            *(worker for some in workers.values() for worker in some),
        ]
        with ThreadPoolExecutor(max(1, len(all_))) as pool:
            looks = dict(pool.map(lambda target: (target.pid, self._sample(target)), all_))
        return [
            Seen(rank, looks[rank.process.pid], [looks[worker.pid] for worker in workers[rank.process.pid]])
            for rank in self._ranks
        ]

    def _sample(self, target: Process) -> StackSample:
        """Return what a process does between two looks at its stack."""
        first = self._stack(target)
        before = cpu_seconds(target.pid)
        threading.Event().wait(_APART_SECONDS)
        used = (cpu_seconds(target.pid) - before) / _APART_SECONDS
        second = self._stack(target)
        now = process(target.pid)
        moved = None not in (places := {first.location, second.location}) and len(places) > 1
        return StackSample(now.state if now else "X", waits_in(target.pid), max(used, moved), second)

    def _stack(self, target: Process) -> Stack:
        if target.user != os.geteuid() and not self._others:
            return Stack(unknown="it belongs to another user, and `[process] stacks` is not true")
        with self._dumps:
            if self._late.is_set():
                return Stack(unknown="there was no time to read it")
            return stack_of(target.pid) if lives(target) else Stack(unknown="it has ended")


def _workers(ranks: Iterable[Rank], all_: Mapping[int, Process]) -> Mapping[int, Sequence[Process]]:
    """By rank, the processes that it started to load data."""
    by_rank: dict[int, list[Process]] = {rank.process.pid: [] for rank in ranks}
    programs = {pid: arguments(pid) for pid in by_rank}  # which forked workers share
    left = _MOST - len(by_rank)
    for child in all_.values():
        mine = by_rank.get(child.parent)
        if mine is None or child.pid in by_rank or len(mine) >= _MAX_WORKERS or not left:
            continue
        if child.name == LOADER or arguments(child.pid) == programs[child.parent] or is_spawned(child):
            mine.append(child)
            left -= 1
    return by_rank
