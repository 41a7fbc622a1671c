"""What a watch costs and how soon it finds a NaN, by number of runs and their length.

`python -m studies.benchmarks.live` watches real TensorBoard files of 20 tags, each of which gets a new
step every ten seconds, as a training loop that logs would write it. In the last setting a file with a new
name appears in some run every half second, too, as checkpoints and images do. The first minute does not
count, because a watch may then use what it saved before.

`python -m studies.benchmarks.live 100 1000 2` measures one setting: runs, points a run, new names a
second.
"""

import math
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from pathlib import Path

import psutil
from tensorboard.compat.proto.event_pb2 import Event
from tensorboard.compat.proto.summary_pb2 import Summary
from tensorboard.summary.writer.record_writer import RecordWriter

from sentinel.common.errors import StateError
from sentinel.sources.discovery import discover
from sentinel.storage.store import Store

SETTINGS = (  # runs, points a run, new file names a second
    (100, 1_000, 0),
    (1_000, 1_000, 0),
    (100, 100_000, 0),
    (5_000, 1_000, 0),
    (10_000, 1_000, 0),
    (5_000, 1_000, 2),
)
LOG_SECONDS = 10.0
SETTLING_SECONDS = 60.0
MEASURED_SECONDS = 120.0  # at least one round of reading, however many runs there are
ILL = 20  # in so many runs the loss becomes NaN
TAGS = (
    *("train/loss", "train/grad_norm", "train/learning_rate", "train/epoch", "train/reward"),
    *("train/reward_std", "train/frac_reward_zero_std", "train/kl", "train/entropy", "train/num_tokens"),
    *("train/completions/mean_length", "train/completions/clipped_ratio", "train/step_time"),
    *(f"train/rewards/f{i}/mean" for i in range(7)),
)


@dataclass(frozen=True)
class Extras:
    """What a watch does besides: the rest of its configuration, what happens while the logs go on, in how
    many of the runs the loss is NaN from then on, and what goes on ``beside`` it, given the state directory.
    """

    config: str = ""
    meanwhile: Callable[[], object] = str
    sick: int = 0
    beside: Callable[[Path], AbstractContextManager[object]] = nullcontext


NOTHING_ELSE = Extras()


def event(step: int, loss: float | None = None) -> bytes:
    values = [Summary.Value(tag=tag, simple_value=0.5 + 0.01 * (step * 7 % 13)) for tag in TAGS]
    if loss is not None:
        values[0].simple_value = loss
    return Event(wall_time=1.7e9 + step, step=step, summary=Summary(value=values)).SerializeToString()


def measure(
    runs: int, points: int, names: float, extras: Extras = NOTHING_ELSE
) -> tuple[float, float, float, float]:
    """Seconds to read the history, then, while the logs go on, the CPU share, resident MB and the longest
    seconds until a NaN was found.
    """
    with tempfile.TemporaryDirectory() as place:
        root = Path(place)
        steps = points // len(TAGS)
        first = root / "first"
        with first.open("wb") as file:
            writer = RecordWriter(file)
            for step in range(steps):
                writer.write(event(step))
        files = [
            root / "runs" / f"run{i:05}" / f"events.out.tfevents.1700000000.host.{i}.0" for i in range(runs)
        ]
        for path in files:
            path.parent.mkdir(parents=True)
            path.write_bytes(first.read_bytes())
        (root / "sentinel.toml").write_text(extras.config)
        command = ["watch", str(root / "runs"), "--state-dir", str(root / "state")]
        command += ["--config", str(root / "sentinel.toml")]
        begun = time.perf_counter()
        watch = psutil.Popen(
            [sys.executable, "-m", "sentinel", *command], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        try:
            while not caught_up(watch, root / "state", runs):
                time.sleep(0.5)
            reading = time.perf_counter() - begun
            with extras.beside(root / "state"):
                share, delay = appending(watch, root / "state", files, steps, names, extras)
            return reading, share, watch.memory_info().rss / 1e6, delay
        finally:
            watch.kill()
            watch.wait()


def caught_up(watch: psutil.Process, state: Path, runs: int) -> bool:
    """Whether every run was recorded once, and the watch is idle. A busy machine alone makes it idle, too."""
    try:
        with Store(state, create=False) as store:
            recorded = len(store.runs())
    except StateError:
        return False
    return recorded == runs and watch.cpu_percent(1.0) < 20


def appending(
    watch: psutil.Process, state: Path, files: list[Path], step: int, names: float, extras: Extras
) -> tuple[float, float]:
    """Let every log grow by a step each LOG_SECONDS. The CPU share that the watch takes once it has its pace,
    and the longest time until it has found a NaN of one of the ILL runs.
    """
    begun = time.perf_counter()
    turn = 0
    named = 0
    looked = 0.0
    ill = {len(files) * i // ILL for i in range(ILL)}
    ids = {run: discover([files[run].parent], state).runs[0].id for run in ill}
    since: dict[int, float] = {}
    delays: dict[int, float] = {}
    wanted = SETTLING_SECONDS + MEASURED_SECONDS
    while (passed := time.perf_counter() - begun) < wanted or len(delays) < len(since):
        if passed < SETTLING_SECONDS:
            settled = passed
            before = sum(watch.cpu_times()[:2])
        while turn < passed / LOG_SECONDS * len(files):
            round_, run = divmod(turn, len(files))
            if run in ids and passed >= SETTLING_SECONDS:
                since.setdefault(run, passed)
            with files[run].open("ab") as file:
                fails = run < extras.sick or run in since
                RecordWriter(file).write(event(step + round_, math.nan if fails else None))
            turn += 1
        while named < passed * names:
            (files[named % len(files)].parent / f"sample-{named}.png").write_bytes(b"\x89PNG")
            named += 1
        if passed - looked > 1:
            looked = passed
            for run in (run for run in since if run not in delays and has_nan(state, ids[run])):
                delays[run] = passed - since[run]
        extras.meanwhile()
        time.sleep(0.05)
    return (sum(watch.cpu_times()[:2]) - before) / (passed - settled), max(delays.values())


def has_nan(state: Path, run: str) -> bool:
    """Whether the watch has found that a signal of a run is not finite."""
    with Store(state, create=False) as store:
        return any(one.detector == "non-finite-metric" for one in store.incidents(run=run))


def main(settings: Sequence[tuple[int, int, float]]) -> None:
    heads = f"{'runs':>6} {'points a run':>13} {'new names/s':>12}"
    print(f"{heads} {'read in s':>10} {'CPU of a core':>14} {'resident MB':>12} {'NaN found in s':>15}")
    for runs, points, names in settings:
        reading, share, memory, delay = measure(runs, points, names)
        row = f"{runs:6} {points:13} {names:12g} {reading:10.1f} {share:14.1%} {memory:12.0f} {delay:15.1f}"
        print(row, flush=True)


if __name__ == "__main__":
    given = [float(word) for word in sys.argv[1:]]
    main([(int(given[0]), int(given[1]), given[2])] if given else SETTINGS)
