"""Samples the ranks of a training that hangs, twice and in threads, while the watch goes on."""

import os
import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from msgspec.structs import replace

from sentinel.detectors.run_checks import HangDiagnosis
from sentinel.processes.description import waits_in
from sentinel.processes.flight_recorder import last_collectives
from sentinel.processes.hang_diagnosis import ProcessSample, RankSample, diagnose
from sentinel.processes.kernel_log import xids
from sentinel.processes.nvml import gpu_use
from sentinel.processes.ranks import LOADER, Rank, is_spawned
from sentinel.processes.ras import ras_problems
from sentinel.processes.stacks import Stack, stack_of
from sentinel.processes.table import Process, arguments, cpu_seconds, lives, process, processes

ENDED = Stack(unknown="it has ended")

_SAMPLE_PAUSE_SECONDS = 1.0  # between the two dumps of a process
_MAX_SAMPLING_SECONDS = 20.0  # for all dumps
_MAX_WORKERS = 16  # of a rank
_MAX_SAMPLED_PROCESSES = 64  # of a training
_MAX_DUMPS = 4  # at once
_MAX_DEVICES_SECONDS = 5.0  # for what is known of the devices, beside the dumps


class HangSampling:
    """One sampling of ``ranks``.

    ``death`` says in words that a rank died, and ``others`` whether the stacks of other users' processes may
    be dumped. ``ring`` is called when the result is there. ``devices`` returns what is known of the devices,
    and may take long.
    """

    def __init__(
        self,
        ranks: Sequence[Rank],
        death: str,
        others: bool,
        ring: Callable[[], None],
        devices: Callable[[], str] = str,
    ) -> None:
        self._ranks = ranks
        self._death = death
        self._others = others
        self._ring = ring
        self._devices = devices
        self._is_late = threading.Event()
        self._dumps = threading.BoundedSemaphore(_MAX_DUMPS)
        self._diagnosis: HangDiagnosis | None = None
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def result(self) -> HangDiagnosis | None:
        """Return the diagnosis, which is empty after an error; None while the sampling goes on."""
        if self._diagnosis is None and self._thread.is_alive():
            return None
        return self._diagnosis or HangDiagnosis()

    def _run(self) -> None:
        deadline = threading.Timer(_MAX_SAMPLING_SECONDS, self._is_late.set)
        deadline.start()
        self._diagnosis = self._diagnose()
        deadline.cancel()
        self._ring()

    def _diagnose(self) -> HangDiagnosis:
        descriptions: list[str] = []
        thread = threading.Thread(target=lambda: descriptions.append(self._devices()), daemon=True)
        thread.start()
        diagnosis = diagnose(self._sample_ranks(), self._death)
        thread.join(_MAX_DEVICES_SECONDS)
        return replace(diagnosis, devices="".join(descriptions))

    def _sample_ranks(self) -> list[RankSample]:
        workers = _workers(self._ranks, processes())
        targets = [rank.process for rank in self._ranks]
        targets += [worker for loader_workers in workers.values() for worker in loader_workers]
        with ThreadPoolExecutor(max(1, len(targets))) as pool:
            samples = dict(pool.map(lambda target: (target.pid, self._sample(target)), targets))
        return [
            RankSample(
                rank, samples[rank.process.pid], [samples[worker.pid] for worker in workers[rank.process.pid]]
            )
            for rank in self._ranks
        ]

    def _sample(self, target: Process) -> ProcessSample:
        """Return what a process does between two stack dumps; nothing if its pid was reused."""
        first = self._stack(target)
        before = cpu_seconds(target.pid)
        threading.Event().wait(_SAMPLE_PAUSE_SECONDS)
        busy = (cpu_seconds(target.pid) - before) / _SAMPLE_PAUSE_SECONDS
        second = self._stack(target)
        now = process(target.pid)
        if now is None or now.started != target.started:
            return ProcessSample("X", "", 0.0, ENDED)
        locations = {first.location, second.location}
        if None not in locations and len(locations) > 1:  # it moved, so it does something
            busy = max(busy, 1.0)
        return ProcessSample(now.state, waits_in(target.pid), busy, second)

    def _stack(self, target: Process) -> Stack:
        if target.user != os.geteuid() and not self._others:
            return Stack(unknown="it belongs to another user, and `[process] stacks` is not true")
        with self._dumps:
            if self._is_late.is_set():
                return Stack(unknown="there was no time to read it")
            return stack_of(target.pid) if lives(target) else ENDED


def _workers(ranks: Iterable[Rank], targets: Mapping[int, Process]) -> Mapping[int, Sequence[Process]]:
    """Return the processes that each rank started to load data, by the number of the rank's process."""
    by_rank: dict[int, list[Process]] = {rank.process.pid: [] for rank in ranks}
    programs = {pid: arguments(pid) for pid in by_rank}  # which forked workers share
    free = _MAX_SAMPLED_PROCESSES - len(by_rank)
    for child in targets.values():
        workers = by_rank.get(child.parent)
        if workers is None or child.pid in by_rank or len(workers) >= _MAX_WORKERS or not free:
            continue
        if child.name == LOADER or arguments(child.pid) == programs[child.parent] or is_spawned(child):
            workers.append(child)
            free -= 1
    return by_rank


def describe_devices(ranks: Sequence[Rank], log: Path) -> str:
    """Return what the kernel's log, NCCL, PyTorch and NVIDIA's library say of some ranks, in words; may be
    empty.

    None of it is an alarm. It is off by default: it was proved on one GPU, and with several only against
    recorded answers.
    """
    titles = {rank.process.pid: rank.title if rank.world > 1 else "its process" for rank in ranks}
    errors = dict.fromkeys(xids(rank.process) for rank in ranks)
    lines = [*errors, ras_problems(titles), last_collectives(ranks, log), gpu_use(titles)]
    return "; ".join(filter(None, lines))
