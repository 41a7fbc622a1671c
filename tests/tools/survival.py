"""A watch that is killed again and again while its runs go wrong and its receiver misbehaves.

Every source has a run, and rsync brings the logs of some more from elsewhere. Each run that lies in files has
another, in whose place a new training begins half-way, before the eyes of the watch. `python -m
tests.tools.survival 50` kills it fifty times; the test suite does it a few times. With `--flaky` the receiver
is down or refuses everything during whole lives of the watch as well.
"""

import json
import os
import random
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Set
from dataclasses import dataclass
from itertools import count
from pathlib import Path

from sentinel.common.clock import SystemClock
from sentinel.config.file import Config
from sentinel.incidents.json_body import incident_body
from sentinel.sinks.delivery import Delivery
from sentinel.storage.store import Store
from sentinel.watch.systemd import ServiceManager
from sentinel.watch.watcher import Watcher
from tests.sinks.receiver import Receiver, close, hang, status
from tests.sources.copying import rsync
from tests.sources.wandb.backend import Backend
from tests.sources.writers import WRITERS, WandbOnlineWriter, Writer

STEPS = 240  # spread over the lives, so that kills fall before, between and after the incidents
MAX_LIFE_SECONDS = 2.5  # from when the watch begins to read
FAILURES = (status(500), status(429, Retry_After="1"), hang)
OUTAGES = (None, None, close, status(403))
"""What a flaky receiver answers to all requests during a life; None if it answers as usual."""
RSYNCED = ("jsonl", "tensorboard", "wandb", "csv")
RSYNC_EVERY_STEPS = 4
MAX_RESTS = 5
"""How often the receiver may rest at the end. It takes everything by then, so one rest is enough, unless the
machine is so busy that an answer comes too late."""
LATER = ("state", "resolved_step")
"""What another training may change of an incident that was there before."""

Row = Mapping[str, float]
Incidents = Mapping[str, dict]
"""By id, as a replay tells them."""


@dataclass(frozen=True)
class Outcome:
    recorded: Incidents
    of_event_logs: Set[str]  # those that lie side by side and name one process, so that one of them speaks
    by_the_killed: int  # so many of them, and not at the very end
    replayed: Incidents  # of the runs that were never replaced
    calm: Incidents  # of the others, as a watch recorded them that was never killed,
    calm_before: Incidents  # which is what it had before they were replaced,
    replayed_after: Incidents  # and this is what their new trainings tell
    received: list[dict]  # bodies
    taken: list[dict]  # those that the receiver said it took
    repeats: int  # bodies that came more than once

    @property
    def lost(self) -> set[str]:
        """The incidents of which the receiver should know, and does not."""
        wanted = {
            key for key, one in self.recorded.items() if one["severity"] != "info" and not one["inhibited_by"]
        }
        known = heard(self.taken).keys()
        told = {self.recorded[key]["detector"] for key in self.of_event_logs & known}
        spoken_for = {key for key in self.of_event_logs if self.recorded[key]["detector"] in told}
        return wanted - known - spoken_for

    @property
    def false_last(self) -> dict[str, str]:
        """The last that the receiver heard of incidents, by id, where that is not so."""
        last = {key: events[-1][0] for key, events in heard(self.taken).items()}
        over = {key for key, one in self.recorded.items() if one["state"] in ("resolved", "withdrawn")}
        told_over = {key: event in ("resolved", "flapping") for key, event in last.items()}
        return {key: event for key, event in last.items() if told_over[key] != (key in over)}


def rows(dice: random.Random, late: int = 0) -> Iterator[Row]:
    """A GRPO run whose KL takes off, whose answers grow into the cap and whose rewards become equal.

    All that so many steps ``late``.
    """
    for step in count(-late):
        kl = 0.02 + 0.01 * dice.random() if step < 100 else 3.0 + dice.random()
        yield {
            "train/loss": dice.gauss(0, 0.01),
            "train/reward": 0.2 + 0.002 * step + dice.gauss(0, 0.05),
            "train/reward_std": 0.2 if step < 160 else 0.0,
            "train/frac_reward_zero_std": 0.1 if step < 160 else 1.0,
            "train/kl": kl,
            "train/entropy": 0.4 + dice.gauss(0, 0.02),
            "train/completions/mean_length": 200.0,
            "train/completions/clipped_ratio": 0.05 if step < 60 else 0.95,
        }


class Rsynced:
    """Writes a run elsewhere; after some steps rsync brings it to where it is watched."""

    def __init__(self, writer: Writer, original: Path) -> None:
        self.writer = writer
        self.original = original

    def start(self, directory: Path) -> None:
        self.original.mkdir(parents=True)
        self.writer.start(self.original)
        self.directory = directory

    def log(self, step: int, values: Row) -> None:
        self.writer.log(step, values)
        if step % RSYNC_EVERY_STEPS == 0:
            rsync()(self.original, self.directory)

    def close(self) -> None:
        self.writer.close()
        rsync()(self.original, self.directory)


class Training:
    """One run that is being written."""

    def __init__(self, writer: Writer, directory: Path, seed: int, late: int) -> None:
        self.writer = writer
        self.directory = directory
        self.seed = seed
        self.late = late
        self.begin()

    def begin(self) -> None:
        self.directory.mkdir(parents=True)
        self.writer.start(self.directory)
        self.rows = enumerate(rows(random.Random(self.seed), self.late))

    def log(self) -> None:
        self.writer.log(*next(self.rows))

    def replace(self) -> None:
        """Another training begins in the same place."""
        self.writer.close()
        shutil.rmtree(self.directory)
        self.seed += 1
        self.begin()


def survive(directory: Path, kills: int, seed: int, *, flaky: bool = False) -> Outcome:
    dice = random.Random(seed)
    kept = directory / "runs" / "kept"
    replaced = directory / "runs" / "replaced"
    taken: list[str] = []  # keys
    outage = None

    def take(handler, released):
        taken.append(handler.headers["Idempotency-Key"])
        status(200)(handler, released)

    def misbehave(handler, released):
        (outage or dice.choice((take, *FAILURES)))(handler, released)

    with Receiver() as receiver, Backend() as backend:
        writers = {name: writer() for name, writer in WRITERS.items()}
        writers["online"] = WandbOnlineWriter(backend)
        if shutil.which("rsync"):
            originals = directory / "elsewhere"
            writers |= {f"{name}-rsynced": Rsynced(WRITERS[name](), originals / name) for name in RSYNCED}
        # In directories named for a format alone, all would be logs of one training, told of once.
        late = {name: number for number, name in enumerate(writers)}
        steady = [Training(writer, kept / f"of {name}", seed, late[name]) for name, writer in writers.items()]
        # Earlier than those: of event logs of one process with equal numbers, a person hears once.
        passing = [Training(WRITERS[n](), replaced / f"of {n}", seed, -1 - late[n]) for n in WRITERS]
        sentinel = Sentinel(directory, receiver.url, backend.environment(directory))
        calm = Calm(directory / "calm", replaced)
        for life in range(kills):
            if life == kills // 2:
                receiver.default = take
                sentinel.read_all()
                before = calm.look()
            outage = dice.choice(OUTAGES) if flaky else None
            receiver.default = misbehave
            backend.listed.clear()
            process = sentinel.start()
            if life == kills // 2 or dice.random() < 0.8:  # the others die while they start
                backend.listed.wait(60)
            if life == kills // 2:
                for training in passing:
                    training.replace()
            share = -(-STEPS // kills)
            last = dice.randrange(share)
            pause = dice.uniform(0, MAX_LIFE_SECONDS) / (last + 1)
            for step in range(share):
                for training in [*steady, *passing]:
                    training.log()
                if step <= last:
                    threading.Event().wait(pause)
                if step == last:
                    process.kill()
                    process.wait()
        receiver.default = take
        for training in [*steady, *passing]:
            training.writer.close()
        by_the_killed = len(sentinel.recorded())
        sentinel.read_all()
        sentinel.deliver_all()
        keys = [request.headers["Idempotency-Key"] for request in receiver.received]
        bodies = [json.loads(request.body) for request in receiver.received]
        replayed = sentinel.replay()
        backend.shutdown()
    assert keys == [body["idempotency_key"] for body in bodies]
    by_key = dict(zip(keys, bodies, strict=True))
    return Outcome(
        recorded=sentinel.recorded(),
        of_event_logs=sentinel.recorded_of("tensorboard:").keys(),
        by_the_killed=by_the_killed,
        replayed={key: i for path, key, i in replayed if not Path(path).is_relative_to(replaced)},
        calm=calm.look(),
        calm_before=before,
        replayed_after={key: i for path, key, i in replayed if Path(path).is_relative_to(replaced)},
        received=bodies,
        taken=[by_key[key] for key in taken],
        repeats=len(keys) - len(set(keys)),
    )


class Sentinel:
    """The watch to be killed, in a process of its own."""

    def __init__(self, directory: Path, receiver: str, environment: Mapping[str, str]) -> None:
        self.state = directory / "state"
        self._environment = {**os.environ, **environment}
        self._config = directory / "sentinel.toml"
        self._config.write_text(
            f'paths = ["runs", "wandb://team/project"]\nstate_dir = "state"\npoll_seconds = 0.1\n'
            f'[[sinks]]\ntype = "webhook"\nurl = "{receiver}"\ntimeout_seconds = 0.5\n'
        )

    def start(self) -> subprocess.Popen:
        return subprocess.Popen(
            self._command("watch", "--config", str(self._config)),
            env=self._environment,
            stderr=subprocess.DEVNULL,
        )

    def read_all(self) -> None:
        self._run("watch", "--config", str(self._config), "--once")

    def deliver_all(self) -> None:
        """Deliver what is left. `--once` does not wait for a receiver that rests for more than a minute."""
        for _ in range(MAX_RESTS):
            with Store(self.state) as store:
                waiting = store.outbox.undelivered()
            if not waiting:
                return
            rest = max(one.next_attempt or 0.0 for one in waiting) - time.time()
            threading.Event().wait(max(rest, 0.0))
            self.read_all()

    def replay(self) -> list[tuple[str, str, dict]]:
        """The path of the run, the id and the body of every incident."""
        places = [str(self.state.parent / "runs"), "wandb://team/project"]
        runs = json.loads(self._run("replay", *places, "--format", "json"))["runs"]
        for run in runs:
            for incident in run["incidents"]:
                del incident["notifications"]  # what it would have told, not what it found
                incident["ended"] = ""  # as `told` leaves it out
        return [(run["path"], incident["id"], incident) for run in runs for incident in run["incidents"]]

    def recorded(self) -> Incidents:
        return self.recorded_of("")

    def recorded_of(self, runs: str) -> Incidents:
        """Those of the runs whose ids begin so."""
        with Store(self.state) as store:
            return told(incident for incident in store.incidents() if incident.run.startswith(runs))

    def _run(self, *arguments: str) -> str:
        ended = subprocess.run(
            self._command(*arguments), env=self._environment, capture_output=True, text=True, check=False
        )
        assert ended.returncode == 0, ended.stderr
        return ended.stdout

    def _command(self, *arguments: str) -> list[str]:
        return [sys.executable, "-m", "sentinel", *arguments]


class Calm:
    """A watch that is never killed, but seldom looks."""

    def __init__(self, state: Path, runs: Path) -> None:
        self._store = Store(state)
        clock = SystemClock()
        config = Config(paths=[str(runs)])
        self._watcher = Watcher(config, self._store, Delivery(state, [], clock), clock, ServiceManager())

    def look(self) -> Incidents:
        self._watcher.once(threading.Event())
        return told(self._store.incidents())


def told(incidents: Iterable) -> Incidents:
    """The incidents by id. How a run ended is noted at a later look than its last row, so it is left out."""
    return {incident.id: {**incident_body(incident), "ended": ""} for incident in incidents}


def check(outcome: Outcome) -> None:
    recorded = outcome.recorded
    wanted = outcome.replayed | outcome.calm
    wrong = {key for key in recorded | wanted if recorded.get(key) != wanted.get(key)}
    assert not wrong, [(recorded.get(key), wanted.get(key)) for key in sorted(wrong)]
    for key, before in outcome.calm_before.items():
        after = outcome.calm[key]
        assert {**after, **{name: before[name] for name in LATER}} == before, "what was found stays"
    new = {key: incident for key, incident in outcome.calm.items() if key not in outcome.calm_before}
    assert nameless(new) == nameless(outcome.replayed_after), "a new training is judged like any other"
    assert not outcome.lost, "every incident that is to be sent arrives"
    assert not outcome.false_last, "the last message says what is so now"
    for events in heard(outcome.received).values():
        assert len({event for event, _ in events}) == len({*events}), "a repeat carries the same key"


def heard(bodies: Iterable[dict]) -> dict[str, list[tuple[str, str]]]:
    """The events and keys that came, by incident id."""
    found: dict[str, list[tuple[str, str]]] = {}
    for body in bodies:
        for one in body.get("notifications", [body]):
            found.setdefault(one["incident"]["id"], []).append((one["event"], one["idempotency_key"]))
    return found


def nameless(incidents: Incidents) -> list[str]:
    """All of them but for their ids, which say how often a training began in the same place."""
    causes = {key: incident["detector"] for key, incident in incidents.items()}
    plain = [
        {**i, "id": "", "trouble": "", "inhibited_by": causes.get(i["inhibited_by"])}
        for i in incidents.values()
    ]
    return sorted(json.dumps(incident, sort_keys=True) for incident in plain)


def main(kills: int, *, flaky: bool) -> None:
    with tempfile.TemporaryDirectory() as directory:
        outcome = survive(Path(directory), kills, seed=kills, flaky=flaky)
    print(f"lost {len(outcome.lost)}, false last messages {len(outcome.false_last)}")
    check(outcome)
    fired = Counter(incident["detector"] for incident in outcome.recorded.values())
    print(f"{kills} kills: {fired.total()} incidents, equal to the replay's: {dict(fired)}")
    print(f"{outcome.by_the_killed} recorded by watches that were killed")
    before = len(outcome.calm_before)
    after = len(outcome.replayed_after)
    print(f"{before} in trainings that were replaced, {after} in those that replaced them")
    failed = len(outcome.received) - len(outcome.taken)
    print(f"{len(outcome.received)} requests, {failed} refused or hung, {outcome.repeats} repeats")


if __name__ == "__main__":
    main(int(sys.argv[1]), flaky="--flaky" in sys.argv)
