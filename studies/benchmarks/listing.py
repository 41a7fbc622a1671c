"""How long `sentinel runs` takes to list many runs, as a process from its start to its end, by format.

Run with ``python -m studies.benchmarks.listing``. Each run holds STEPS steps of 20 tags; one of each
format is written as a library would and lies there under so many names. The peer is tensorboard-data-server,
which loads the same event files whole, on all cores, and names no framework, no signal and no state.
"""

import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import wandb
from tensorboardX import SummaryWriter

from studies.benchmarks.tensorboard import TAGS, data_server_seconds
from tests.sources.writers import WRITERS

RUNS = 1_000
STEPS = 50
SEVERAL = "tensorboard, several values an event"


def values(step: int) -> dict[str, float]:
    return {tag: (1 + place) / (1 + step) for place, tag in enumerate(TAGS)}


def by_writer(name: str) -> Callable[[Path], None]:
    def write(directory: Path) -> None:
        writer = WRITERS[name]()
        writer.start(directory)
        for step in range(STEPS):
            writer.log(step, values(step))
        writer.close()

    return write


def by_tensorboardx(directory: Path) -> None:
    with SummaryWriter(str(directory)) as writer:
        for step in range(STEPS):
            for tag, value in values(step).items():
                writer.add_scalar(tag, value, step)


def by_wandb(directory: Path) -> None:
    settings = wandb.Settings(mode="offline", silent=True, console="off")
    with wandb.init(dir=directory, project="listing", config={"lr": 1e-4}, settings=settings) as run:
        for step in range(STEPS):
            run.log(values(step))


FORMATS = {
    "tensorboard": by_tensorboardx,
    SEVERAL: by_writer("tensorboard"),
    "wandb": by_wandb,
    **{name: by_writer(name) for name in ("jsonl", "csv", "trainer_state", "json", "console")},
}


def seconds(root: Path) -> float:
    start = time.perf_counter()
    command = [sys.executable, "-m", "sentinel", "runs", root]
    compiled = {**os.environ, "PYTHONDONTWRITEBYTECODE": ""}  # from the second time on, as when installed
    listed = subprocess.run(command, capture_output=True, check=True, env=compiled)
    taken = time.perf_counter() - start
    assert listed.stdout.splitlines()[-1].startswith(b"%d runs: " % RUNS), listed.stdout
    return taken


def main() -> None:
    print(f"{RUNS:,} runs of {STEPS * len(TAGS):,} points; seconds")
    for name, write in FORMATS.items():
        with tempfile.TemporaryDirectory() as scratch:
            first = Path(scratch, "first")
            root = Path(scratch, "runs")
            first.mkdir()
            write(first)
            for number in range(RUNS):
                shutil.copytree(first, root / f"run{number:04}", symlinks=True)
            ours = min(seconds(root) for _ in range(3))
            beside = ""
            if name.startswith("tensorboard"):
                other = min(data_server_seconds(root) for _ in range(3))
                beside = f"   tensorboard-data-server {other:6.3f}, {other / ours:4.1f} times as long"
            print(f"{name:<38}{ours:6.3f}{beside}", flush=True)


if __name__ == "__main__":
    main()
