"""What it costs a watch to know the processes behind its logs: the processor time that it spends on that.

`python -m studies.benchmarks.processes [RUNS PROCESSES SECONDS]`: so many processes, of which each of the
first ones writes a log of its own. The time is counted within the watch, by the methods of `ProcessMonitor`.
"""

import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

import orjson

from tests.tools.ear import watching

COUNTS = """
import json, sys, time
from sentinel.watch.process_monitor import ProcessMonitor
spent = dict.fromkeys(("seek", "ended", "news", "dead_rank", "ranks", "shortages", "process"), 0.0)
def counted(name, method):
    def call(*words):
        begun = time.thread_time()
        try:
            return method(*words)
        finally:
            spent[name] += time.thread_time() - begun
            if name == "seek":
                found = sum(one.handle is not None for one in words[0]._writers.values())
                told = {"at": time.monotonic(), "all": time.process_time(), "found": found, **spent}
                print(json.dumps(told), file=out, flush=True)
    return call
out = open(sys.argv.pop(1), "w")
for name in spent:
    setattr(ProcessMonitor, name, counted(name, getattr(ProcessMonitor, name)))
from sentinel.cli.app import main
main()
"""
MOST = 0.01  # of a core
ROW_SECONDS = 20.0  # between two rows of a log
WARM_SECONDS = 600.0  # in which the watch reads what is there and finds the processes, at most
MANY = """
import json, os, random, sys, time
runs, all_, place, pause = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3], float(sys.argv[4])
for number in range(all_):
    if os.fork():
        continue
    if number >= runs:
        while os.getppid() > 1: time.sleep(pause)
        os._exit(0)
    dice = random.Random(number)
    held = [open(os.devnull) for _ in range(8)]
    with open(f"{place}/run-{number}/train.jsonl", "a", buffering=1) as log:
        for step in range(1 << 30):
            print(json.dumps({"step": step, "loss": 2 / (step + 1) + dice.random()}), file=log)
            time.sleep(pause * (1 + dice.random()) / 1.5)
            if os.getppid() == 1: os._exit(0)
print("ready", flush=True)
sys.stdin.read()
"""


def shares(root: Path, runs: Path, most: int, seconds: float) -> dict[str, float]:
    """The shares of a core that parts of a watch use once it is warm, and how many processes it found."""
    counts = root / "counts"
    with watching(root, [runs], "", [sys.executable, "-c", COUNTS, str(counts)]):
        begun = time.monotonic()
        while (first := _last(counts))["found"] < most and time.monotonic() < begun + WARM_SECONDS:
            threading.Event().wait(1)
        while (last := _last(counts))["at"] < first["at"] + seconds:
            threading.Event().wait(1)
    took = last.pop("at") - first["at"]
    return {"found": last.pop("found")} | {name: (last[name] - first[name]) / took for name in last}


def _last(counts: Path) -> dict[str, float]:
    """What was counted last."""
    lines = counts.read_text().splitlines() if counts.exists() else []
    return orjson.loads(lines[-2]) if len(lines) > 1 else {"found": 0, "at": 0.0}


def main(runs: int = 1000, processes: int = 2000, seconds: float = 180.0) -> None:
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as directory:
        place = Path(directory).resolve() / "runs"
        for number in range(runs):
            (place / f"run-{number}").mkdir(parents=True)
        words = [str(runs), str(processes), str(place), str(ROW_SECONDS)]
        command = [sys.executable, "-c", MANY, *words]
        with subprocess.Popen(command, stdin=-1, stdout=-1, start_new_session=True) as many:
            assert many.stdout.readline() == b"ready\n"
            try:
                found = shares(place.parent / "watch", place, runs, seconds)
            finally:
                os.killpg(many.pid, signal.SIGKILL)
    print(
        f"{runs} runs, {processes} processes, of which {found.pop('found')} were found; in {seconds:.0f} s:"
    )
    print(f"the whole watch: {100 * found.pop('all'):.2f}% of a core")
    for name, part in found.items():
        print(f"    {name}: {100 * part:.2f}%")
    print(f"for processes: {100 * sum(found.values()):.2f}% of a core")
    sys.exit("it costs too much" if sum(found.values()) > MOST else None)


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
