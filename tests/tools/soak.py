"""Generations of runs that come and go under one watch, and what stays of them in memory and on disk.

`python -m tests.tools.soak MINUTES RUNS [SECONDS]` watches generations of so many runs, each for so many
seconds (120 by default). A third of the runs goes wrong. Then their logs are removed, which the watch has to
let go of after `GONE_AFTER_SECONDS`. Each line shows the watch at the end of a generation. Nothing but the
history of incidents may grow.
"""

import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path

from sentinel.storage.store import Store
from tests.sources.writers import WRITERS, Writer

GONE_AFTER_SECONDS = 60
FORMATS = ("jsonl", "csv", "tensorboard", "console", "wandb")
STEPS = 100


class Training:
    """One run, which goes wrong half-way if it is ``sick``."""

    def __init__(self, directory: Path, writer: Writer, *, sick: bool, seed: int) -> None:
        self._writer = writer
        self._sick = sick
        self._dice = random.Random(seed)
        self._step = 0
        directory.mkdir(parents=True)
        writer.start(directory)

    def log(self) -> None:
        self._step += 1
        wrong = self._sick and self._step > STEPS // 2
        self._writer.log(
            self._step,
            {
                "train/loss": 2.0 / (1 + 0.02 * self._step) + self._dice.gauss(0, 0.02),
                "train/kl": (3.0 if wrong else 0.02) + 0.01 * self._dice.random(),
                "train/reward": 0.5 + self._dice.gauss(0, 0.05),
                "train/entropy": 0.4 + self._dice.gauss(0, 0.02),
            },
        )

    def close(self) -> None:
        self._writer.close()


def soak(directory: Path, minutes: float, runs: int, seconds: float) -> None:
    state = directory / "state"
    log = directory / "watch.log"
    config = directory / "sentinel.toml"
    config.write_text(
        f'paths = ["runs"]\nstate_dir = "state"\ngone_after = "{GONE_AFTER_SECONDS}s"\n'
        f'[[sinks]]\ntype = "terminal"\n'
    )
    (directory / "runs").mkdir()
    with log.open("w") as said:
        command = [sys.executable, "-m", "sentinel", "watch", "--config", str(config)]
        watch = subprocess.Popen(command, stdout=said, stderr=said)
        try:
            ends = time.monotonic() + 60 * minutes
            number = 0
            print("generation  memory MiB  state MiB  descriptors  runs  open incidents  log MiB  CPU s")
            while time.monotonic() < ends:
                _live(directory / "runs" / f"generation-{number}", runs, seconds, seed=number)
                print(_line(number, watch.pid, state, log), flush=True)
                number += 1
            threading.Event().wait(2 * GONE_AFTER_SECONDS + 30)
            print(_line("all gone", watch.pid, state, log))
        finally:
            watch.send_signal(signal.SIGTERM)
            watch.wait(60)


def _live(place: Path, runs: int, seconds: float, seed: int) -> None:
    """One generation, from its first step to the removal of its logs."""
    trainings: Sequence[Training] = [
        Training(
            place / f"run-{i}", WRITERS[FORMATS[i % len(FORMATS)]](), sick=i % 3 == 0, seed=seed * runs + i
        )
        for i in range(runs)
    ]
    begun = time.monotonic()
    for step in range(STEPS):
        for training in trainings:
            training.log()
        due = begun + seconds * (step + 1) / STEPS
        threading.Event().wait(max(0.0, due - time.monotonic()))
    for training in trainings:
        training.close()
    shutil.rmtree(place)


def _line(generation: object, pid: int, state: Path, log: Path) -> str:
    process = Path(f"/proc/{pid}")
    status = dict(line.split(":", 1) for line in (process / "status").read_text().splitlines())
    memory = int(status["VmRSS"].split()[0]) / 1024
    used = sum(file.stat().st_size for file in state.iterdir()) / 2**20
    descriptors = len([*(process / "fd").iterdir()])
    ticks = (process / "stat").read_text().rpartition(")")[2].split()
    worked = (int(ticks[11]) + int(ticks[12])) / os.sysconf("SC_CLK_TCK")
    with closing(Store(state, read_only=True)) as store:
        known = len(store.runs())
        found = sum(store.open_counts().values())
    return (
        f"{generation!s:>10}  {memory:10.0f}  {used:9.1f}  {descriptors:11}  {known:4}  {found:14}"
        f"  {log.stat().st_size / 2**20:7.2f}  {worked:5.0f}"
    )


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as place:
        soak(Path(place), float(sys.argv[1]), int(sys.argv[2]), float([*sys.argv, "120"][3]))
