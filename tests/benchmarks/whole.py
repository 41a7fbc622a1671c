"""What a user waits for: whole processes that read one noisy training log, ours judging it as well.

`python -m tests.benchmarks.whole` writes the TensorBoard file of a GRPO training of 20 tags and 1,000,000
scalars that goes wrong in its second half: the KL hovers around its threshold and then leaves it, and
completions run into their cap. Each contender is a process of its own, start-up included, and is timed
in the same way: the median of five runs, taken in turns, so that what else the machine does hits all.
"""

import json
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
from tensorboard.compat.proto.summary_pb2 import Summary

from tests.benchmarks.tensorboard import TAGS
from tests.sources.tensorboard.writer import NAME, VERSION, event

SCALARS = 1_000_000
REPEATS = 5

TBPARSE = """
import sys
from tbparse import SummaryReader
print(len(SummaryReader(sys.argv[1], event_types={"scalars"}).scalars))
"""
ACCUMULATOR = """
import logging, sys
logging.getLogger("tensorboard").setLevel(logging.ERROR)
from tensorboard.backend.event_processing.event_accumulator import SCALARS, EventAccumulator
log = EventAccumulator(sys.argv[1], size_guidance={SCALARS: 0})
log.Reload()
print(sum(len(log.Scalars(tag)) for tag in log.Tags()[SCALARS]))
"""


def noisy(steps: int) -> dict[str, np.ndarray]:
    """The values of each tag by step."""
    random = np.random.default_rng(7)
    part = np.linspace(0.0, 1.0, steps)
    noise = {tag: random.normal(0.0, 1.0, steps) for tag in TAGS}
    series = {tag: 1.0 + 0.1 * noise[tag] for tag in TAGS}
    late = np.clip((part - 0.5) / 0.5, 0.0, 1.0)
    series["train/loss"] = 0.5 * np.exp(-3 * part) + 0.05 * noise["train/loss"]
    series["train/grad_norm"] = np.exp(0.3 * noise["train/grad_norm"])
    series["train/learning_rate"] = 1e-5 * (1 - part)
    series["train/epoch"] = 3 * part
    series["train/entropy"] = 1.5 - 0.5 * part + 0.05 * noise["train/entropy"]
    series["train/kl"] = 0.05 + np.where(late > 0, 0.45, 0.0) + 3.0 * (late > 0.8) + 0.05 * noise["train/kl"]
    series["train/completions/clipped_ratio"] = np.clip(
        0.05 + 0.5 * late + 0.1 * noise["train/completions/clipped_ratio"], 0.0, 1.0
    )
    series["train/frac_reward_zero_std"] = np.clip(0.2 + 0.1 * noise["train/frac_reward_zero_std"], 0.0, 1.0)
    return series


def write_log(path: Path, scalars: int) -> None:
    """One event a scalar, as the usual writers do it."""
    series = noisy(scalars // len(TAGS))
    with path.open("wb") as file:
        file.write(VERSION)
        for step, values in enumerate(zip(*series.values(), strict=True)):
            for place, (tag, value) in enumerate(zip(series, values, strict=True)):
                stamp = 1.7e9 + 10.0 * step + 1e-4 * place
                file.write(event(Summary.Value(tag=tag, simple_value=value), step=step, time=stamp))


def seconds(command: list[str]) -> tuple[float, str]:
    """How long a process takes, and what it prints."""
    begun = time.perf_counter()
    printed = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    return time.perf_counter() - begun, printed


def main(scalars: int = SCALARS) -> None:
    with tempfile.TemporaryDirectory() as scratch:
        path = Path(scratch, NAME)
        write_log(path, scalars)
        contenders = {
            "sentinel replay": [sys.executable, "-m", "sentinel", "replay", scratch, "--format", "json"],
            "tbparse": [sys.executable, "-c", TBPARSE, str(path)],
            "EventAccumulator": [sys.executable, "-c", ACCUMULATOR, str(path)],
        }
        taken: dict[str, list[float]] = {name: [] for name in contenders}
        for _ in range(REPEATS):
            for name, command in contenders.items():
                spent, printed = seconds(command)
                taken[name].append(spent)
                if name != "sentinel replay":
                    assert int(printed) == scalars, f"{name} read something else"
                    continue
                (run,) = json.loads(printed)["runs"]
                assert run["points"] == scalars
        print(f"{scalars:,} scalars of {len(TAGS)} tags, {path.stat().st_size / 1e6:.0f} MB, ", end="")
        print(f"{len(run['incidents'])} incidents; medians of {REPEATS} whole processes")
    yardstick = statistics.median(taken["tbparse"])
    for name, times in taken.items():
        median = statistics.median(times)
        print(f"{name:<20}{median:8.2f} s   {median / yardstick:6.3f} of tbparse's time", end="")
        print(f"   ({min(times):.2f} to {max(times):.2f})")


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
