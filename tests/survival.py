"""A watch that is killed again and again while its runs go wrong and its receiver misbehaves.

`python -m tests.survival 50` kills it fifty times; the test suite does it a few times.
"""

import json
import random
import signal
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from sentinel.alerts.store import Store
from sentinel.alerts.wire import incident_body
from tests.sinks.receiver import Receiver, hang, status
from tests.sources.writers import WRITERS

STEPS = 240  # spread over the lives, so that kills fall before, between and after the incidents
ANSWERS = (status(200), status(500), status(429, Retry_After="1"), hang)

Row = Mapping[str, float]


@dataclass(frozen=True)
class Outcome:
    replayed: list[dict]
    recorded: list[dict]
    delivered: list[dict]  # bodies the receiver took
    refused: int
    repeats: int  # bodies that came more than once


def rows(dice: random.Random) -> Iterator[Row]:
    """A GRPO run whose KL takes off, whose answers grow into the cap and whose rewards become equal."""
    step = 0
    while True:
        kl = 0.02 + 0.01 * dice.random() if step < 100 else 3.0 + dice.random()
        yield {
            "train/loss": dice.gauss(0, 0.01),
            "train/reward": 0.5 + dice.gauss(0, 0.05),
            "train/reward_std": 0.2 if step < 160 else 0.0,
            "train/frac_reward_zero_std": 0.1 if step < 160 else 1.0,
            "train/kl": kl,
            "train/entropy": 0.4 + dice.gauss(0, 0.02),
            "train/completions/mean_length": 200.0,
            "train/completions/clipped_ratio": 0.05 if step < 60 else 0.95,
        }
        step += 1


def sentinel(*arguments: str) -> list[str]:
    return [sys.executable, "-m", "sentinel", *arguments]


def survive(directory: Path, kills: int, seed: int) -> Outcome:
    dice = random.Random(seed)
    runs, state = directory / "runs", directory / "state"
    writers = []
    for format_ in WRITERS:
        (runs / format_).mkdir(parents=True)
        writer = WRITERS[format_]()
        writer.start(runs / format_)
        writers.append((writer, rows(random.Random(seed))))
    step = 0
    with Receiver() as receiver:
        refused = 0

        def answer(handler, released):
            nonlocal refused
            chosen = dice.choice(ANSWERS)
            refused += chosen is not ANSWERS[0]
            chosen(handler, released)

        receiver.default = answer
        config = directory / "sentinel.toml"
        config.write_text(
            f'paths = ["runs"]\nstate_dir = "state"\npoll_seconds = 0.1\n'
            f'[[sinks]]\ntype = "webhook"\nurl = "{receiver.url}"\ntimeout_seconds = 0.5\n'
        )
        for _ in range(kills):
            life = subprocess.Popen(sentinel("watch", "--config", str(config)), stderr=subprocess.DEVNULL)
            end = threading.Event()
            timer = threading.Timer(dice.uniform(0.2, 2.5), end.set)
            timer.start()
            for _ in range(-(-STEPS // kills)):
                for writer, log in writers:
                    writer.log(step, next(log))
                step += 1
                end.wait(0.02)
            end.wait()
            life.send_signal(signal.SIGKILL)
            life.wait()
        receiver.default = status(200)
        for writer, _ in writers:
            writer.close()
        once = sentinel("watch", "--config", str(config), "--once")
        last = subprocess.run(once, stderr=subprocess.PIPE, text=True, check=False)
        assert last.returncode == 0, last.stderr
        received = list(receiver.received)
    again = sentinel("replay", str(runs), "--format", "json")
    replay = json.loads(subprocess.run(again, capture_output=True, check=True).stdout)
    replayed = [incident for run in replay["runs"] for incident in run["incidents"]]
    with Store(state) as store:
        recorded = [dict(incident_body(incident)) for incident in store.incidents()]
    bodies = [json.loads(request.body) for request in received]
    keys = [request.headers["Idempotency-Key"] for request in received]
    assert keys == [body["idempotency_key"] for body in bodies]
    return Outcome(replayed, recorded, bodies, refused, len(keys) - len(set(keys)))


def check(outcome: Outcome) -> None:
    by_id = {incident["id"]: incident for incident in outcome.recorded}
    assert by_id == {incident["id"]: incident for incident in outcome.replayed}
    to_send = {i["id"] for i in outcome.replayed if i["severity"] != "info" and not i["inhibited_by"]}
    told: dict[str, set[str]] = {}
    for body in outcome.delivered:
        if body["event"] == "firing":
            told.setdefault(body["incident"]["id"], set()).add(body["idempotency_key"])
    assert told.keys() == to_send, "every incident that is to be sent arrives"
    assert all(len(keys) == 1 for keys in told.values()), "a repeat carries the same key"


def main(kills: int) -> None:
    with tempfile.TemporaryDirectory() as directory:
        outcome = survive(Path(directory), kills, seed=kills)
    check(outcome)
    fired = [f"{i['detector']}@{i['fired_step']}" for i in outcome.replayed]
    print(f"{kills} kills: {len(fired)} incidents, equal to the replay's: {', '.join(fired)}")
    print(f"{len(outcome.delivered)} requests, {outcome.refused} refused or hung, {outcome.repeats} repeats")


if __name__ == "__main__":
    main(int(sys.argv[1]))
