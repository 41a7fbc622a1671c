"""Four trainings go wrong under a watch, in fast motion: `make demo`, or ``demo.py [SECONDS]``.

The logs of a run that becomes NaN and of one whose policy leaves its reference grow as they grew when they
were written. Of two others the processes run (`ranks.py`): one has three ranks and hangs, the other ends with
an exit status. A real `sentinel watch` follows them, and a report of them ends the demo.
"""

import json
import multiprocessing
import os
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from sentinel.processes.stacks import py_spy

SAMPLES = Path(__file__).parent
SENTINEL = [sys.executable, "-m", "sentinel"]
SLICES = 60

STORY = {
    "kl-blowup": "a language model is paid for cheerful words, and forgets its grammar",
    "non-finite-metric": "a mean over the words of a text that has none",
    "hanging": "three processes train together, and one of them waits for data that never come",
    "failing": "a training that ends with exit status 3 in the middle",
}
PATIENCE_SECONDS = 120  # for the first look of the watch, on a busy machine

SHARES = {"kl-blowup": 0.6, "non-finite-metric": 1.0}
"""How much of the demo a log takes to grow."""


def say(text=""):
    print(text, flush=True)


def grow(name, runs, seconds):
    """Write a log that comes with the project piece by piece, as a training does."""
    (source,) = (SAMPLES / name).glob("events.out.tfevents.*")
    data = source.read_bytes()
    (runs / name).mkdir()
    with (runs / name / source.name).open("wb", buffering=0) as log:
        for number in range(SLICES):
            log.write(data[len(data) * number // SLICES : len(data) * (number + 1) // SLICES])
            time.sleep(SHARES[name] * seconds / SLICES)


def train(name, runs, seconds, world, end):
    """Start the ranks of a training that goes wrong soon."""
    (runs / name).mkdir()
    with socket.create_server(("127.0.0.1", 0)) as meeting:
        port, descriptor = meeting.getsockname()[1], meeting.fileno()
        names = {"WORLD_SIZE": world, "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": port}
        words = [runs / name / "metrics.jsonl", seconds, end]
        return [
            subprocess.Popen(
                [sys.executable, SAMPLES / "ranks.py", *map(str, words), *[str(descriptor)] * (rank == 0)],
                env={**os.environ, **{key: str(value) for key, value in names.items()}, "RANK": str(rank)},
                pass_fds=[descriptor] * (rank == 0),
                stderr=subprocess.DEVNULL,
            )
            for rank in range(world)
        ]


def wait_until(reached, config, most_seconds):
    """Wait until the status of the watch is as wanted, but not for ever."""
    words = [*SENTINEL, "status", "--config", config, "--format", "json"]
    waiting_until = time.monotonic() + most_seconds
    while time.monotonic() < waiting_until:
        shown = subprocess.run(words, capture_output=True, text=True, check=False)
        if shown.returncode == 0 and reached(json.loads(shown.stdout)):
            break
        time.sleep(1)


def has_begun(shown):
    return bool(shown["health"])


def has_told_all(shown):
    """Whether there is an alert of each training."""
    sick = [incident["run"] for incident in shown["incidents"] if incident["severity"] != "info"]
    return all(any(f"/{name}" in run for run in sick) for name in STORY)


def demo(seconds):
    place = Path(tempfile.mkdtemp(prefix="sentinel-demo-"))
    runs, config = place / "runs", place / "sentinel.toml"
    runs.mkdir()
    config.write_text(
        f'state_dir = "{place / "state"}"\n\n'
        '[[sinks]]\ntype = "terminal"\n\n'
        f"[detectors.stream-stall]\nleast_seconds = {seconds / 4}  # the default is ten minutes\n"
    )
    say(f"Four trainings begin below {runs}:")
    for name, what in STORY.items():
        say(f"  {name}: {what}")
    say(f"\nTheir logs grow for {seconds:g} seconds, while this command follows them:")
    say(f"  sentinel watch {runs} --config {config}\n")
    environment = {**os.environ, "COLUMNS": os.environ.get("COLUMNS", "100")}
    ranks = []
    watch = subprocess.Popen([*SENTINEL, "watch", runs, "--config", config], env=environment)
    try:
        wait_until(has_begun, config, PATIENCE_SECONDS)
        ranks += train("hanging", runs, 0.2 * seconds, world=3, end="hang")
        ranks += train("failing", runs, 0.6 * seconds, world=1, end="3")
        writers = [multiprocessing.Process(target=grow, args=(name, runs, seconds)) for name in SHARES]
        for writer in writers:
            writer.start()
        for writer in writers:
            writer.join()
        wait_until(has_told_all, config, 4 * seconds)
    finally:
        watch.terminate()
        watch.wait(30)
        for rank in ranks:
            rank.kill()
            rank.wait()
    report = place / "report.html"
    say(
        "\nThe trainings are over. This command writes what their logs show, as one page to read and to send."
    )
    say("That one of them hangs and one failed is not in it, because only a watch sees processes and time.")
    if py_spy() is None:
        say("The watch could not see the line at which that one hangs: pip install '.[stacks]'.")
    say(f"  sentinel replay {runs} --format html -o {report}")
    words = ["replay", runs, "--config", config, "--format", "html", "-o", report]
    subprocess.run([*SENTINEL, *words], check=True)
    say(f"\nOpen it in a browser: {report}")


if __name__ == "__main__":
    demo(float(sys.argv[1]) if len(sys.argv) > 1 else 30.0)
