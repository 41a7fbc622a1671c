"""What an archive of many small runs costs, by engine: CPU and memory of the driver and of each worker.

Run with ``python -m studies.benchmarks.archive [RUNS]``. Each run holds some thousand points of 20 tags;
one of each format is written as a library would and lies there many times, with names as other trainings have
them. The CPU of a run is that of all processes over the number of runs. ``again`` is the same command again,
which finds that nothing changed, and ``report`` the report. Ten times as many runs, judged by a pool, show
whether memory grows.
"""

import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path

import psutil

from studies.benchmarks.listing import FORMATS

RUNS = 2_000
_MANY = 10  # times as many
_LOOK_SECONDS = 0.1

_OF_ONE_TRAINING = re.compile(r"(?<=-)\w{8}(?=$|\.wandb$)|(?<=\.)\d+(?=\.\d+$)")
"""The id of W&B and the number of a process in the names of files: equal ones make copies one training."""

ENGINES = {"one worker": ["--workers", "1"], "a pool": [], "Ray": ["--engine", "ray"]}


@dataclass
class Cost:
    """Of a command and all that it started, by process: CPU in seconds, and the largest memory in MB."""

    seconds: float = 0.0
    cpu: dict[int, float] = field(default_factory=dict)
    memory: dict[int, float] = field(default_factory=dict)

    def look(self, process: psutil.Process) -> None:
        try:
            told = process.cpu_times()
            memory = process.memory_info().rss / 1e6
        except psutil.Error:  # it ended
            return
        self.cpu[process.pid] = told.user + told.system
        self.memory[process.pid] = max(memory, self.memory.get(process.pid, 0.0))


def archive(root: Path, runs: int) -> float:
    """Write an archive. Gives the mean size of a run in kB."""
    formats = [*FORMATS.items()]
    for name, write in formats:
        (root / "first" / name).mkdir(parents=True)
        write(root / "first" / name)
    for number in range(runs):
        run = root / "runs" / f"{number % 50:02}" / f"run-{number:05}"
        shutil.copytree(root / "first" / formats[number % len(formats)][0], run, symlinks=True)
        _make_one_of_its_own(run, number)
    size = sum(file.stat().st_size for file in (root / "runs").rglob("*") if file.is_file())
    return size / runs / 1e3


def _make_one_of_its_own(run: Path, number: int) -> None:
    for path in sorted(run.rglob("*"), reverse=True):  # what lies in a directory before the directory
        if path.is_symlink():
            path.unlink()
        elif (name := _OF_ONE_TRAINING.sub(f"{number:08}", path.name)) != path.name:
            path.rename(path.with_name(name))


def cost(*arguments: str | Path) -> Cost:
    """Run a command of sentinel as a process of its own."""
    found = Cost()
    begun = time.perf_counter()
    command = [sys.executable, "-m", "sentinel", *arguments]
    compiled = {**os.environ, "PYTHONDONTWRITEBYTECODE": ""}
    with subprocess.Popen(command, env=compiled, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE) as driver:
        process = psutil.Process(driver.pid)
        while driver.poll() is None:
            try:
                for one in [process, *process.children(recursive=True)]:
                    found.look(one)
            except psutil.Error:  # the driver ended
                break
            time.sleep(_LOOK_SECONDS)
        _, said = driver.communicate()
    assert driver.returncode == 0, said.decode()
    found.seconds = time.perf_counter() - begun
    found.memory[0] = found.memory.pop(driver.pid, 0.0)
    return found


def measure(runs: int, engines: Mapping[str, Sequence[str]]) -> None:
    """Print a line for each engine."""
    with tempfile.TemporaryDirectory() as scratch:
        root = Path(scratch)
        size = archive(root, runs)
        print(f"{runs:,} runs of {size:.0f} kB; CPU in ms a run, memory in MB")
        for name, options in engines.items():
            out = root / name
            first, again = (cost("archive", "judge", root / "runs", "--out", out, *options) for _ in range(2))
            report = cost("archive", "report", out, "--format", "html")
            driver = first.memory.pop(0)
            worker = max(first.memory.values(), default=0.0)
            print(
                f"{name:<11}{first.seconds:8.1f} s {sum(first.cpu.values()) / runs * 1e3:6.1f} ms   "
                f"driver {driver:4.0f}   worker {worker:4.0f}   again {again.seconds:5.1f} s   "
                f"report {report.seconds:5.1f} s {report.memory[0]:5.0f}",
                flush=True,
            )


def main(runs: int = RUNS) -> None:
    """Measure all engines, and a pool with many more runs."""
    there = {name: told for name, told in ENGINES.items() if name != "Ray" or find_spec("ray") is not None}
    measure(runs, there)
    measure(_MANY * runs, {"a pool": ENGINES["a pool"]})


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
