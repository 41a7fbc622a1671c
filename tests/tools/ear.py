"""A real watch whose notifications are heard, each with its time."""

import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

import orjson

from tests.sinks.receiver import Receiver

SENTINEL = [sys.executable, "-m", "sentinel"]


class Heard(NamedTuple):
    """One notification and the time at which it came."""

    at: float
    event: str
    run: str
    incident: dict

    def __str__(self) -> str:
        told = self.incident
        return f"{self.event} {told['severity']} {told['detector']}: {told['summary']}"


class Ear:
    """Everything that the receiver was told, each with its time."""

    def __init__(self, receiver: Receiver) -> None:
        self._receiver = receiver
        self._requests = 0
        self.heard: list[Heard] = []

    def listen(self, run: str) -> list[Heard]:
        """What was told so far of the runs whose names begin so."""
        now = time.monotonic()
        new = tuple(self._receiver.received)[self._requests :]
        self._requests += len(new)
        for body in (orjson.loads(request.body) for request in new):
            for one in body.get("notifications", [body]):
                self.heard.append(Heard(now, one["event"], one["run"]["run"], one["incident"]))
        return [one for one in self.heard if one.run.startswith(run)]

    def wait(self, run: str, wanted: Callable[[Heard], bool], seconds: float) -> Heard | None:
        """The first wanted notification about a run, if it comes in time."""
        until = time.monotonic() + seconds
        while True:
            if found := next(filter(wanted, self.listen(run)), None):
                return found
            if time.monotonic() >= until:
                return None
            time.sleep(0.05)


@contextmanager
def watching(
    root: Path, places: Sequence[Path], more: str, command: Sequence[str] = SENTINEL
) -> Iterator[Ear]:
    """A watch over some places, with its state below ``root``; ``more`` is added to its configuration."""
    root.mkdir(parents=True, exist_ok=True)
    with Receiver() as receiver, (root / "watch.log").open("w") as said:
        config = root / "sentinel.toml"
        config.write_text(
            f'paths = {[str(place) for place in places]}\nstate_dir = "state"\n'
            f'[[sinks]]\ntype = "webhook"\nurl = "{receiver.url}"\nmin_severity = "info"\n{more}'
        )
        watch = subprocess.Popen([*command, "watch", "--config", str(config)], stdout=said, stderr=said)
        try:
            while ": watching " not in (root / "watch.log").read_text():
                assert watch.poll() is None, (root / "watch.log").read_text()
                time.sleep(0.05)
            yield Ear(receiver)
        finally:
            watch.terminate()
            watch.wait()
