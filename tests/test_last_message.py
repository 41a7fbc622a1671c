"""The last message that a receiver took about an incident says what is so now, whatever happened before."""

import json
import tempfile
import threading
from pathlib import Path
from typing import ClassVar

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from sentinel.config.file import Config
from sentinel.detectors.api import Severity
from sentinel.detectors.discovery import all_detectors
from sentinel.incidents.incident import Event, Incident, State
from sentinel.notifications.decide import REPEAT_SECONDS
from sentinel.sinks.base import Digest, Permanent, Transient
from sentinel.sinks.delivery import Delivery
from sentinel.storage.store import Store
from sentinel.watch.systemd import ServiceManager
from sentinel.watch.watcher import Watcher
from tests.chosen_detectors import choose_detectors
from tests.manual_clock import ManualClock

pytestmark = pytest.mark.long

NOW = 1_767_230_000.0
RUNS = ("a", "b")
OPEN = {Event.FIRING, Event.ESCALATED, Event.REPEAT, Event.REOPENED, Event.FLAPPING}
FLAPS = {Event.FLAPPING}
MINUTE = 60.0
MAX_REST_SECONDS = 1200.0
"""After so long, a receiver that is up again was tried again, because pauses after failures are five minutes
at most. What was refused may wait for as long again as it was refused."""

VALUES = {
    "clean": {"kl": 0.02, "loss": 1.0},
    "high": {"kl": 9.0, "loss": 1.0},
    "worse": {"kl": 90.0, "loss": 1.0},
    "nan": {"kl": 0.02, "loss": float("nan")},
}
TURNS = st.sampled_from([*VALUES, "clean", "brief", "silence", "kill", "pause"])
MODES = st.sampled_from(["up", "up", "down", "slow", "refuses"])


class Receiver:
    """Remembers the last thing that it was told of each incident."""

    name = "terminal"
    heard: ClassVar[dict[str, tuple[Event, Incident, float]]]

    def __init__(self, clock: ManualClock) -> None:
        self.clock = clock
        self.mode = "up"
        self.heard = {}

    def send(self, message, now):
        match self.mode:
            case "down":
                raise Transient("down")
            case "refuses":
                raise Permanent("forbidden")
            case "slow":
                self.clock.advance(5.0)
        for told in message.notifications if isinstance(message, Digest) else [message]:
            self.heard[told.incident.id] = told.event, told.incident, now


class World:
    """Two runs, the watch that follows them, and a receiver."""

    def __init__(self, place: Path) -> None:
        self.clock = ManualClock(NOW)
        self.runs = place / "runs"
        self.state = place / "state"
        self.runs.mkdir()
        self.steps = dict.fromkeys(RUNS, 0)
        self.refused_seconds = 0.0
        self.receiver = Receiver(self.clock)
        self.store = Store(self.state)
        self.begin()
        for run in RUNS:
            self.log(run, "clean", 60)
        self.look()

    def begin(self) -> None:
        config = Config(paths=[str(self.runs)], sinks=[{"type": "terminal"}], signals={"kl": "kl"})
        self.delivery = Delivery(self.state, [self.receiver], self.clock)
        self.watcher = Watcher(config, self.store, self.delivery, self.clock, ServiceManager())
        self.delivery.start()

    def kill(self) -> None:
        """Nothing of the watch is left but what it committed."""
        self.delivery.stop(10.0)
        self.begin()

    def log(self, run: str, what: str, rows: int = 40) -> None:
        with (self.runs / f"{run}.jsonl").open("a") as file:
            for _ in range(rows):
                step = self.steps[run] = self.steps[run] + 1
                row = {"step": step, "time": self.clock.now(), **VALUES[what], "entropy": 0.4}
                file.write(json.dumps(row) + "\n")

    def look(self, seconds: float = 0.0) -> None:
        self.clock.advance(seconds)
        self.watcher.round(None, threading.Event())
        before = None
        while not self.delivery.drain(1e-3) and before != self.clock.now():
            before = self.clock.now()  # a slow receiver moves it

    def turn(self, run: str, what: str) -> None:
        match what:
            case "kill":
                self.kill()
            case "silence":
                self.look(3600.0)
            case "pause":
                self.look(REPEAT_SECONDS)
            case "brief":  # it fires and is over between two polls
                self.log(run, "nan", 5)
                self.log(run, "clean", 400)
            case _:
                self.log(run, what)
        self.look(MINUTE)

    def let_it_rest(self) -> None:
        for _ in range(int(MAX_REST_SECONDS / MINUTE)):
            self.look(MINUTE)
        while self.refused_seconds > 0 and self.false_messages():
            self.look(MINUTE)
            self.refused_seconds -= MINUTE
        assert self.false_messages() == []

    def false_messages(self) -> list[str]:
        """What the receiver believes, where that is not so."""
        return [
            f"{one.detector} is {one.state}, the receiver heard {heard and heard[0]}"
            for one in self.store.incidents()
            if one.severity >= Severity.WARNING and one.inhibited_by is None
            if not self.is_true(one, heard := self.receiver.heard.get(one.id))
        ]

    def is_true(self, now: Incident, heard: tuple[Event, Incident, float] | None) -> bool:
        if heard is None:
            return False
        event, told, at = heard
        if not now.open:
            awaits = event in FLAPS and self.clock.now() - at < REPEAT_SECONDS + MINUTE
            return event is Event.RESOLVED or awaits
        known = any(one.detector == "stream-stall" and one.run == now.run for one in self.open())
        if now.state is State.LOST and (event is Event.LOST or not known):
            return event is Event.LOST
        return event in OPEN and told.severity == now.severity

    def open(self) -> list[Incident]:
        return self.store.incidents(open_only=True)


@pytest.fixture(autouse=True)
def chosen(monkeypatch):
    every = all_detectors()
    choose_detectors(monkeypatch, {n: every[n] for n in ("kl-blowup", "non-finite-metric", "stream-stall")})


@settings(max_examples=25)
@given(st.lists(st.tuples(MODES, st.lists(st.tuples(st.sampled_from(RUNS), TURNS), max_size=6)), max_size=5))
@example([("down", [("a", "nan"), ("a", "clean"), ("a", "clean"), ("a", "nan")])])
@example([("up", [("a", "nan"), ("a", "clean"), ("a", "clean"), ("a", "nan")])])
@example([("up", [("a", "brief")]), ("refuses", [("b", "high"), ("b", "worse"), ("b", "kill")])])
@example([("up", [("a", "high"), ("a", "silence"), ("a", "high")])])
@example([("up", [("a", "brief")] * 6), ("down", [("a", "clean")])])
@example([("refuses", [("a", "brief"), ("a", "clean"), ("a", "pause"), ("a", "clean"), ("a", "silence")])])
def test_the_last_message_says_what_is_so_now(phases):
    with tempfile.TemporaryDirectory() as directory:
        world = World(Path(directory))
        try:
            for mode, turns in [*phases, ("up", [])]:
                world.receiver.mode = mode
                begun = world.clock.now()
                if mode in ("up", "slow"):
                    world.let_it_rest()
                for run, what in turns:
                    world.turn(run, what)
                    if mode in ("up", "slow"):
                        assert world.false_messages() == []
                if mode == "refuses":
                    world.refused_seconds += world.clock.now() - begun
        finally:
            world.delivery.stop(10.0)
            world.store.close()
