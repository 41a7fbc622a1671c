"""One run under watch: where its log was read up to, what was understood, what is wrong with it."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import msgspec
import numpy as np

from detectors.api import Detector
from sentinel.alerts.lifecycle import Book
from sentinel.detection import Arrived
from sentinel.frames.naming import Naming
from sentinel.frames.stream import Stream
from sentinel.frames.views import View
from sentinel.sources.base import Batch, Cursor, Run

_UNMAPPED_SHOWN = 200
_PARTS = frozenset({"train", "train_inner", "training", "val", "valid", "validation", "eval", "test"})


@dataclass(frozen=True)
class Understanding:
    """What a run's log is taken to say: framework, tags by signal, tags that mean nothing."""

    framework: str | None
    signals: dict[str, list[str]]
    unmapped: list[str]

    def missing(self, detector: Detector) -> list[str]:
        """The signals without which the detector cannot judge this run; empty if it can."""
        lacking = [s.value for s in detector.needs if s not in self.signals]
        if not any(s in self.signals for s in detector.judges):
            lacking.insert(0, detector.judges[0].value)
        return lacking


@dataclass
class Tracker:
    """State of one run; what changes survives a restart through `dump`.

    ``layout`` identifies detectors and names: histories kept for others are of no use.
    """

    run: Run
    name: str
    layout: str
    naming: Naming
    views: Sequence[View]
    book: Book
    cursor: Cursor = field(default_factory=dict)
    streams: dict[str, Stream] = field(default_factory=dict)
    points: int = 0
    first_step: int | None = None
    last_step: int | None = None
    last_time: float | None = None  # newest time in the log
    config: dict[str, Any] = field(default_factory=dict)

    def absorb(self, batch: Batch) -> list[Arrived]:
        """Take in what a poll yielded; gives the new rows to judge."""
        self.cursor = batch.cursor
        self.config.update(batch.config)
        arrived = []
        for chunk in batch.chunks:
            if not len(chunk.step):
                continue
            self.points += len(chunk.step)
            low, high = int(chunk.step.min()), int(chunk.step.max())
            self.first_step = low if self.first_step is None else min(self.first_step, low)
            self.last_step = high if self.last_step is None else max(self.last_step, high)
            if np.isfinite(chunk.time).any():
                self.last_time = max(self.last_time or 0.0, float(np.nanmax(chunk.time)))
            rows = self._stream(chunk.stream).extend(chunk)
            arrived += [Arrived(self.run.id, chunk.stream, one) for one in rows]
        return arrived

    def _stream(self, name: str) -> Stream:
        """The stream of that name, begun if it is new."""
        if name not in self.streams:
            folder = self.run.path.name
            part = folder if self.run.format == "tensorboard" and folder in _PARTS else ""
            self.streams[name] = Stream(name, self.run.format, part, self.naming, self.views)
        return self.streams[name]

    @property
    def attempts(self) -> int:
        """How often training began or was resumed, as far as the log tells."""
        return sum(s.attempts.number for s in self.streams.values())

    def understanding(self) -> Understanding:
        """What the log is taken to say, over all streams."""
        frameworks: Counter[str] = Counter()
        signals: dict[str, dict[str, None]] = {}
        unmapped: dict[str, None] = {}
        for stream in self.streams.values():
            profile, meanings = stream.explained()
            if profile is not None:
                frameworks[profile.name] += 1
            for tag, meaning in meanings.items():
                if meaning is not None:
                    signals.setdefault(meaning.signal.value, {})[tag] = None
                elif len(unmapped) < _UNMAPPED_SHOWN:
                    unmapped[tag] = None
        framework = frameworks.most_common(1)[0][0] if frameworks else None
        return Understanding(
            framework, {s: list(tags) for s, tags in sorted(signals.items())}, list(unmapped)
        )

    def described(self) -> dict[str, str | None]:
        """The run as notifications name it."""
        return {
            "run": self.name,
            "path": str(self.run.path),
            "framework": self.understanding().framework,
        }

    def dump(self) -> bytes:
        """Everything that `restore` needs."""
        return _ENCODER.encode(
            {
                "layout": self.layout,
                "cursor": self.cursor,
                "streams": {name: stream.dump() for name, stream in self.streams.items()},
                "book": self.book.dump(),
                "facts": [self.points, self.first_step, self.last_step, self.last_time, self.config],
            }
        )

    def restore(self, state: bytes) -> bool:
        """Go on where `dump` was called; false, and nothing done, if it was laid out for other detectors.

        Raises msgspec.DecodeError for bytes that `dump` did not make.
        """
        kept = msgspec.msgpack.decode(state, ext_hook=_array)
        if kept["layout"] != self.layout:
            return False
        self.cursor = kept["cursor"]
        for name, stream in kept["streams"].items():
            self._stream(name).restore(stream)
        self.book.restore(kept["book"])
        self.points, self.first_step, self.last_step, self.last_time, self.config = kept["facts"]
        return True


_ARRAY = 1  # msgpack extension code


def _extension(thing: Any) -> Any:
    if isinstance(thing, np.ndarray):
        parts = [thing.dtype.str, thing.shape, thing.tobytes()]
        return msgspec.msgpack.Ext(_ARRAY, msgspec.msgpack.encode(parts))
    raise TypeError(f"{type(thing).__name__} is no part of a run's state")


def _array(code: int, data: memoryview) -> Any:
    if code != _ARRAY:
        raise msgspec.DecodeError(f"unknown extension {code}")
    kind, shape, content = msgspec.msgpack.decode(data)
    return np.frombuffer(content, dtype=kind).reshape(shape).copy()


_ENCODER = msgspec.msgpack.Encoder(enc_hook=_extension)
