"""Three trainings go wrong under a watch, in fast motion: `make demo`, or ``demo.py [SECONDS]``.

The logs of a run that becomes NaN, of one that hangs and of one whose policy leaves its reference grow as
they grew when they were written. A real `sentinel watch` follows them, and a report of them ends the demo.
"""

import json
import os
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

SAMPLES = Path(__file__).parent
SENTINEL = [sys.executable, "-m", "sentinel"]
SLICES = 60

STORY = {
    "kl-blowup": "a language model is paid for cheerful words, and forgets its grammar",
    "non-finite-metric": "a mean over the words of a text that has none",
    "hanging": "a training whose process stops in the middle",
}
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


def hang(runs):
    """Write the log of a training that made a step a second until now."""
    steps, now = 60, time.time()
    rows = [
        {"step": step, "time": now - steps + step, "loss": 0.3 + 2.0 * 0.95**step} for step in range(steps)
    ]
    (runs / "hanging").mkdir()
    (runs / "hanging" / "metrics.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in rows))


def demo(seconds):
    place = Path(tempfile.mkdtemp(prefix="sentinel-demo-"))
    runs, config = place / "runs", place / "sentinel.toml"
    runs.mkdir()
    config.write_text(
        f'state_dir = "{place / "state"}"\n\n'
        '[[sinks]]\ntype = "terminal"\n\n'
        f"[detectors.stream-stall]\nleast_seconds = {seconds / 4}  # the default is ten minutes\n"
    )
    say(f"Three trainings begin below {runs}:")
    for name, what in STORY.items():
        say(f"  {name}: {what}")
    say(f"\nTheir logs grow for {seconds:g} seconds, while this command follows them:")
    say(f"  sentinel watch {runs} --config {config}\n")
    environment = {**os.environ, "COLUMNS": os.environ.get("COLUMNS", "100")}
    watch = subprocess.Popen([*SENTINEL, "watch", runs, "--config", config], env=environment)
    try:
        while not (place / "state").exists() and watch.poll() is None:
            time.sleep(0.1)  # until the watch has begun
        hang(runs)
        writers = [threading.Thread(target=grow, args=(name, runs, seconds)) for name in SHARES]
        for writer in writers:
            writer.start()
        for writer in writers:
            writer.join()
        time.sleep(seconds / 10)
    finally:
        watch.terminate()
        watch.wait(30)
    report = place / "report.html"
    say(
        "\nThe trainings are over. This command writes what their logs show, as one page to read and to send."
    )
    say("That one of them hangs is not in it, because only the clock of a watch tells that.")
    say(f"  sentinel replay {runs} --format html -o {report}")
    words = ["replay", runs, "--config", config, "--format", "html", "-o", report]
    subprocess.run([*SENTINEL, *words], check=True)
    say(f"\nOpen it in a browser: {report}")


if __name__ == "__main__":
    demo(float(sys.argv[1]) if len(sys.argv) > 1 else 30.0)
