"""What a user waits for: whole processes that read one noisy training log, ours judging it as well.

`python -m studies.benchmarks.whole` writes the TensorBoard file of a GRPO training of 20 tags and
1,000,000 scalars that goes wrong in its second half: the KL hovers around its threshold and then leaves it,
and completions run into their cap. Each contender is a process of its own, start-up included, and is timed in
the same way: the median of five runs, taken in turns, so that what else the machine does hits all. One run
before them leaves the byte code of all modules behind, as an installation does. The time on processors says
less about what else the machine does than the time on the clock.

Before that it times `sentinel ONE_RUN`, which reads one of the sample logs, beside the import of polars. That
ratio is what a first look costs, and it should be three at most.
"""

import json
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from pathlib import Path

import numpy as np
from tensorboard.compat.proto.summary_pb2 import Summary

from studies.benchmarks.tensorboard import TAGS
from tests.sources.tensorboard.writer import NAME, VERSION, event

SCALARS = 1_000_000
REPEATS = 5
STARTS = 20  # of the processes that take less than a second
ONE_RUN = Path(__file__).parents[2] / "sample_logs" / "kl-blowup"

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


def seconds(command: list[str], byte_code: Path) -> tuple[float, float, str]:
    """How long a process takes on the clock and on processors, and what it prints."""
    ours = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    environment = ours | {"PYTHONPYCACHEPREFIX": str(byte_code)}
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    begun = time.perf_counter()
    printed = subprocess.run(command, check=True, capture_output=True, text=True, env=environment).stdout
    taken = time.perf_counter() - begun
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    computed = after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime
    return taken, computed, printed


def timed(
    contenders: Mapping[str, list[str]], repeats: int, check: Callable[[str, str], None]
) -> dict[str, list[tuple[float, float]]]:
    """Run all contenders in turns. Return their times on the clock and on processors, by name.

    ``check`` is called with a name and what that one printed.
    """
    taken: dict[str, list[tuple[float, float]]] = {name: [] for name in contenders}
    with tempfile.TemporaryDirectory() as byte_code:
        for turn in range(1 + repeats):
            for name, command in contenders.items():
                on_the_clock, on_processors, printed = seconds(command, Path(byte_code))
                check(name, printed)
                if turn:
                    taken[name].append((on_the_clock, on_processors))
    return taken


def show(taken: Mapping[str, list[tuple[float, float]]], yardstick: str) -> None:
    """Print the medians, and how they compare with that of the yardstick."""
    for place, clock in enumerate(("on the clock", "on processors")):
        print(f"{clock}:")
        unit = statistics.median(both[place] for both in taken[yardstick])
        for name, both in taken.items():
            times = [one[place] for one in both]
            median = statistics.median(times)
            print(f"{name:<20}{median:8.2f} s   {median / unit:6.3f} times {yardstick}", end="")
            print(f"   ({min(times):.2f} to {max(times):.2f})")


def whole_log(scalars: int, repeats: int) -> None:
    """Time contenders that read a long log."""
    with tempfile.TemporaryDirectory() as scratch:
        path = Path(scratch, NAME)
        write_log(path, scalars)
        incidents = 0

        def check(name: str, printed: str) -> None:
            nonlocal incidents
            if name != "sentinel replay":
                assert int(printed) == scalars, f"{name} read something else"
                return
            (run,) = json.loads(printed)["runs"]
            assert run["points"] == scalars
            incidents = len(run["incidents"])

        contenders = {
            "sentinel replay": [sys.executable, "-m", "sentinel", "replay", scratch, "--format", "json"],
            "tbparse": [sys.executable, "-c", TBPARSE, str(path)],
            "EventAccumulator": [sys.executable, "-c", ACCUMULATOR, str(path)],
        }
        taken = timed(contenders, repeats, check)
        print(f"{scalars:,} scalars of {len(TAGS)} tags, {path.stat().st_size / 1e6:.0f} MB, ", end="")
        print(f"{incidents} incidents; medians of {repeats} whole processes")
    show(taken, "tbparse")


def start(repeats: int) -> None:
    """Time `sentinel` on a small log beside the import of the library that no command could do without."""

    def check(name: str, printed: str) -> None:
        assert name != "sentinel ONE_RUN" or "kl-blowup" in printed, "it found something else"

    contenders = {
        "sentinel ONE_RUN": [sys.executable, "-m", "sentinel", str(ONE_RUN)],
        "import polars": [sys.executable, "-c", "import polars"],
    }
    taken = timed(contenders, repeats, check)
    print(f"a small log, {ONE_RUN.name}; medians of {repeats} whole processes")
    show(taken, "import polars")


def main(scalars: int = SCALARS, repeats: int = REPEATS, starts: int = STARTS) -> None:
    start(starts)
    whole_log(scalars, repeats)


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
