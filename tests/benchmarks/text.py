"""One million values in a CSV file and in a JSON lines file: our readers beside pandas and polars.

Run with ``python -m tests.benchmarks.text``. The others give a frame with a row a step, "unpivoted" one
with a row a value; ours gives points with tag, step and time, in pieces of bounded size. Each runs in
processes of its own, alternately, and reads the file several times, of which the fastest counts.
"""

import json
import random
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import pandas as pd
import polars as pl

from sentinel.sources.base import Cursor, Source
from sentinel.sources.csv.file import CsvLog
from sentinel.sources.json.lines import JsonLines
from tests.benchmarks.tensorboard import TAGS

VALUES = 1_000_000
LIMIT = VALUES  # points a poll; what is read at once is bounded all the same
PROCESSES = 5
READS = 6


def write(path: Path) -> None:
    """What a training loop writes that logs TAGS at each step."""
    numbers = random.Random(0)
    with path.open("w", encoding="utf-8") as file:
        if path.suffix == ".csv":
            file.write(f"step,{','.join(TAGS)}\n")
        for step in range(VALUES // len(TAGS)):
            row = {"step": step, **{tag: numbers.gauss(1, 0.1) for tag in TAGS}}
            line = ",".join(map(str, row.values())) if path.suffix == ".csv" else json.dumps(row)
            file.write(line + "\n")


def points(source: Source) -> int:
    cursor: Cursor = {}
    count, more = 0, True
    while more:
        batch = source.poll(cursor, LIMIT)
        assert not batch.complaints
        count += sum(chunk.value.size for chunk in batch.chunks)
        cursor, more = batch.cursor, batch.more
    return count


def cells(frame: pl.DataFrame | pd.DataFrame) -> int:
    return frame.shape[0] * (frame.shape[1] - 1)


READERS: dict[str, dict[str, Callable[[Path], int]]] = {
    "log.csv": {
        "sentinel": lambda path: points(CsvLog(path)),
        "polars": lambda path: cells(pl.read_csv(path)),
        "unpivoted": lambda path: pl.read_csv(path).unpivot(index="step").height,
        "pandas": lambda path: cells(pd.read_csv(path)),
    },
    "log.jsonl": {
        "sentinel": lambda path: points(JsonLines(path)),
        "polars": lambda path: cells(pl.read_ndjson(path)),
        "pandas": lambda path: cells(pd.read_json(path, lines=True)),
    },
}


def run(path: Path, reader: str) -> tuple[float, int]:
    """Seconds and peak memory in MiB of one reader in a process of its own."""
    command = [sys.executable, "-m", "tests.benchmarks.text", str(path), reader]
    seconds, peak = subprocess.run(command, check=True, capture_output=True, text=True).stdout.split()
    return float(seconds), int(peak)


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        for name, readers in READERS.items():
            path = Path(folder, name)
            write(path)
            results = [{reader: run(path, reader) for reader in readers} for _ in range(PROCESSES)]
            best = {reader: min(result[reader] for result in results) for reader in readers}
            for reader, (seconds, peak) in best.items():
                ratio = seconds / best["sentinel"][0]
                print(
                    f"{name:10} {reader:9} {seconds:6.3f} s {peak:5} MiB {ratio:6.2f} times sentinel's time"
                )


def child(path: Path, reader: str) -> None:
    """Say how long it takes to read the file, and how much memory the process needed."""
    seconds = float("inf")
    for _ in range(READS):
        begin = time.perf_counter()
        assert READERS[path.name][reader](path) == VALUES
        seconds = min(seconds, time.perf_counter() - begin)
    peak = next(line for line in Path("/proc/self/status").read_text().splitlines() if "VmHWM" in line)
    print(seconds, int(peak.split()[1]) >> 10)


if __name__ == "__main__":
    if sys.argv[1:]:
        child(Path(sys.argv[1]), sys.argv[2])
    else:
        main()
