"""One million scalars in one event file: our reader beside the others.

Run with ``python -m studies.benchmarks.tensorboard``. All checksums are checked on our side; the data
server's are on request; tbparse and the EventAccumulator check them too.
"""

import logging
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import tensorboard_data_server
from tbparse import SummaryReader
from tensorboard.backend.event_processing.event_accumulator import SCALARS, EventAccumulator
from tensorboard.compat.proto.summary_pb2 import Summary

from sentinel.config.file import Config
from sentinel.replays.replaying import replay
from sentinel.sources.tensorboard.event_files import EventFiles
from tests.sources.tensorboard.writer import NAME, VERSION, event

EVENTS = 1_000_000
TAGS = [
    *("train/loss", "train/grad_norm", "train/learning_rate", "train/epoch", "train/entropy", "train/kl"),
    *("train/reward", "train/reward_std", "train/num_tokens", "train/step_time", "train/clip_ratio/low_mean"),
    *("train/clip_ratio/high_mean", "train/clip_ratio/region_mean", "train/completions/mean_length"),
    *("train/completions/min_length", "train/completions/max_length", "train/completions/clipped_ratio"),
    *("train/frac_reward_zero_std", "train/rewards/accuracy/mean", "train/rewards/accuracy/std"),
]
LIMIT = 100_000  # points a poll


def write_events(path: Path, scalars: int, each: int = 1) -> None:
    """What a training loop writes that logs TAGS at each step, with so many of them in each event."""
    with path.open("wb") as file:
        file.write(VERSION)
        for i in range(0, scalars, each):
            step, place = divmod(i, len(TAGS))
            tags = TAGS[place : place + each]
            values = [Summary.Value(tag=tag, simple_value=1 / (1 + i + n)) for n, tag in enumerate(tags)]
            file.write(event(*values, step=step, time=1.7e9 + 0.37 * step + 1e-4 * place))


def sentinel(path: Path) -> int:
    source = EventFiles(path.parent)
    cursor = {}
    points = 0
    more = True
    while more:
        batch = source.poll(cursor, LIMIT)
        assert not batch.read_issues
        points += sum(len(chunk.value) for chunk in batch.chunks)
        cursor = batch.cursor
        more = batch.more
    return points


def whole_replay(path: Path) -> int:
    """Read and judged by every detector."""
    done = replay([path.parent], Config(), lambda *_: None)
    return sum(run.run_pipeline.log.metadata.points for run in done.runs)


def tbparse(path: Path) -> int:
    return len(SummaryReader(str(path), event_types={"scalars"}).scalars)


def event_accumulator(path: Path) -> int:
    accumulator = EventAccumulator(str(path), size_guidance={SCALARS: 0})
    accumulator.Reload()
    return sum(len(accumulator.Scalars(tag)) for tag in accumulator.Tags()[SCALARS])


def data_server_seconds(directory: Path) -> float:
    """What the server's own log says that loading took."""
    options = "--port 0 --reload once --checksum --samples-per-plugin scalars=all --verbose --verbose"
    command = [tensorboard_data_server.server_binary(), "--logdir", str(directory), *options.split()]
    with subprocess.Popen(command, stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True) as server:
        for line in server.stderr:
            if found := re.search(r"Finished load cycle \(([\d.]+)(ms|s)\)", line):
                server.kill()
                return float(found[1]) / {"s": 1, "ms": 1000}[found[2]]
    raise RuntimeError("the data server ended without having loaded anything")


def seconds(read: Callable[[Path], int], path: Path, events: int) -> float:
    start = time.perf_counter()
    assert read(path) == events, f"{read.__name__} read something else"
    return time.perf_counter() - start


def main(events: int = EVENTS) -> None:
    logging.getLogger("tensorboard").setLevel(logging.ERROR)
    with tempfile.TemporaryDirectory() as scratch:
        path = Path(scratch, NAME)
        write_events(path, events)
        print(f"{events:,} scalars of {len(TAGS)} tags, {path.stat().st_size / 1e6:.0f} MB")
        ours = min(seconds(sentinel, path, events) for _ in range(3))
        judged = min(seconds(whole_replay, path, events) for _ in range(3))
        others = {
            "tensorboard-data-server": min(data_server_seconds(path.parent) for _ in range(3)),
            "EventAccumulator": seconds(event_accumulator, path, events),
            "tbparse": seconds(tbparse, path, events),
        }
    print(f"{'sentinel':<24}{ours:8.3f} s")
    for name, taken in others.items():
        print(f"{name:<24}{taken:8.3f} s   {taken / ours:6.1f} times as long")
    print(f"{'sentinel replay':<24}{judged:8.3f} s   {judged / others['tbparse']:6.3f} of tbparse's time")
    with tempfile.TemporaryDirectory() as scratch:
        path = Path(scratch, NAME)
        write_events(path, events, len(TAGS))
        ours = min(seconds(sentinel, path, events) for _ in range(3))
        other = min(data_server_seconds(path.parent) for _ in range(3))
    print(f"{len(TAGS)} scalars an event:")
    print(f"{'sentinel':<24}{ours:8.3f} s")
    print(f"{'tensorboard-data-server':<24}{other:8.3f} s   {other / ours:6.1f} times as long")


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
