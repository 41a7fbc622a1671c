"""One million values in a CSV file and in a JSON lines file: our readers beside pandas and polars.

A console log has few values among much else: progress bars, warnings, tracebacks, lines of a logger. Its peer
is a loop with one regular expression that was written for this log.

Run with ``python -m studies.benchmarks.text``. The others give a frame with a row a step, "unpivoted" one
with a row a value; ours gives points with tag, step and time, in pieces of bounded size. Each runs in
processes of its own, alternately, and reads the file several times, of which the fastest counts.
"""

import json
import random
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import pandas as pd
import polars as pl

from sentinel.sources.base import Cursor, Source
from sentinel.sources.console.log import ConsoleLog
from sentinel.sources.csv.file import CsvLog
from sentinel.sources.json.lines import JsonLines
from studies.benchmarks.tensorboard import TAGS

VALUES = 1_000_000
LIMIT = VALUES  # points a poll; what is read at once is bounded all the same
PROCESSES = 5
READS = 6
CONSOLE_ROWS = 2000
NOISE = 80  # lines for each row


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


def write_console(path: Path) -> None:
    """What a training prints among the remarks of its libraries."""
    dice = random.Random(0)
    words = ["cache", "tensor", "layer", "shard", "worker", "index", "value", "queue", "kernel", "device"]

    def said(count: int) -> str:
        return " ".join(dice.choices(words, k=count))

    def noise(step: int) -> str:
        kind = dice.random()
        if kind < 0.2:
            states = (f"\r{n}%|{'█' * (n // 10):10}| {n}/100 [00:01<00:09, 9.9it/s]" for n in range(9, 99, 9))
            return f"{''.join(states)}\n"
        if kind < 0.4:
            return (
                f"/lib/python3/site-packages/{said(1)}.py:{step}: UserWarning: {said(9)}\n  warnings.warn(\n"
            )
        if kind < 0.5:
            frames = (f'  File "{said(1)}.py", line {n}, in {said(1)}\n    {said(1)}()\n' for n in range(9))
            return (
                f"WARNING:root:caught\nTraceback (most recent call last):\n{''.join(frames)}KeyError: 'x'\n"
            )
        return f"[2026-01-01 10:00:00,{step % 1000:03}] [INFO] [{said(1)}.py:{step % 900}] {said(8)} {step}\n"

    with path.open("w", encoding="utf-8") as file:
        for step in range(1, CONSOLE_ROWS + 1):
            file.writelines(noise(step) for _ in range(NOISE))
            file.write(f"step {step}: loss {dice.random():.4f}, lr 1.0e-4, grad_norm {dice.random():.3f}\n")


ROW = re.compile(r"step (\d+): loss ([\d.]+), lr ([\d.e-]+), grad_norm ([\d.]+)")


def by_pattern(path: Path) -> int:
    with path.open(encoding="utf-8") as file:
        return sum(len(found.groups()) - 1 for line in file if (found := ROW.search(line)))


def points(source: Source) -> int:
    cursor: Cursor = {}
    count = 0
    more = True
    while more:
        batch = source.poll(cursor, LIMIT)
        assert not batch.read_issues
        count += sum(chunk.value.size for chunk in batch.chunks)
        cursor = batch.cursor
        more = batch.more
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
    "console.log": {"sentinel": lambda path: points(ConsoleLog(path)), "pattern": by_pattern},
}


def run(path: Path, reader: str) -> tuple[float, int]:
    """Seconds and peak memory in MiB of one reader in a process of its own."""
    command = [sys.executable, "-m", "studies.benchmarks.text", str(path), reader]
    seconds, peak = subprocess.run(command, check=True, capture_output=True, text=True).stdout.split()
    return float(seconds), int(peak)


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        for name, readers in READERS.items():
            path = Path(folder, name)
            (write_console if name == "console.log" else write)(path)
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
        count = READERS[path.name][reader](path)
        assert count == (3 * CONSOLE_ROWS if path.name == "console.log" else VALUES)
        seconds = min(seconds, time.perf_counter() - begin)
    peak = next(line for line in Path("/proc/self/status").read_text().splitlines() if "VmHWM" in line)
    print(seconds, int(peak.split()[1]) >> 10)


if __name__ == "__main__":
    if sys.argv[1:]:
        child(Path(sys.argv[1]), sys.argv[2])
    else:
        main()
