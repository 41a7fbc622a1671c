"""Reads runs as the pipeline does, poll by poll."""

import json

import msgspec
import numpy as np

from sentinel.sources.base import PollResult, Run
from sentinel.sources.discovery import discover
from sentinel.sources.location import Location
from sentinel.sources.readers.plain import LATEST
from tests.manual_clock import ManualClock


class Reader:
    """Keeps what was read so far. Cursors are turned to JSON and back between polls, as a restart does.

    A server is asked a quarter of a minute after the other, on ``clock``.
    """

    def __init__(self, path: Location, clock: ManualClock | None = None):
        self.path = path
        self.clock = clock
        self.points: list[tuple[str, int, str]] = []
        """Tag, step and value; the value as text, so that NaN equals NaN."""
        self.times: list[float] = []
        self.read_issues: list[str] = []
        self.restarts = 0
        self.batch = PollResult({})
        self.runs: dict[str, Run] = {}
        self.cursors: dict[str, str] = {}

    def poll(self, limit: int = 1000, polls: int = 10_000) -> "Reader":
        """Read what is new in all runs, with at most so many polls of each."""
        if self.clock is not None:
            self.clock.advance(15)
        self.runs.update((run.id, run) for run in discover([self.path]).runs)
        for run in self.runs.values():
            for _ in range(polls):
                self.batch = batch = run.source.poll(json.loads(self.cursors.get(run.id, "{}")), limit)
                self.cursors[run.id] = json.dumps(batch.cursor, allow_nan=False)
                msgspec.msgpack.encode(batch.cursor)  # is how a watch keeps it
                self.read_issues += map(str, batch.read_issues)
                for chunk in (chunk.flat for chunk in batch.chunks):
                    self.restarts += chunk.restarted
                    assert len(chunk.tag) == len(chunk.step) == len(chunk.time) == len(chunk.value)
                    assert chunk.step.dtype == np.int64
                    assert (np.isnan(chunk.time) | ((chunk.time >= 0) & (chunk.time < LATEST))).all()
                    "".join(chunk.tags).encode()  # raises for what no file or database can keep
                    tags = [chunk.tags[i] for i in chunk.tag]
                    self.points += zip(tags, chunk.step.tolist(), map(str, chunk.value.tolist()), strict=True)
                    self.times += chunk.time.tolist()
                if not batch.more:
                    break
            else:
                assert polls < 10_000, "polling never ends"
        return self
