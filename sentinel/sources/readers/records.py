"""What a logged record means: its step, its time and its numbers, whatever the framework calls them.

A record is a mapping of names to JSON values, such as one line of a JSONL file. Records become points in the
order in which they were logged. To read the next record, one must know something about the earlier ones:
which axis counts the steps, and which series never lacked a value. This is the *memory*. It is JSON-able and
bounded, so that reading in many pieces gives the same points as reading in one.
"""

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from functools import lru_cache
from itertools import compress
from typing import TYPE_CHECKING, Any

import msgspec
import numpy as np
from msgspec.structs import asdict

from sentinel.common.lazy_pattern import lazy_pattern
from sentinel.sources.base import Chunk
from sentinel.sources.readers.axis import Axis, count_of
from sentinel.sources.readers.plain import LATEST, flattened
from sentinel.sources.readers.splits import HELD_OUT, beside_held_out_loss, with_part
from sentinel.sources.readers.words import counter, phase

if TYPE_CHECKING:
    import polars as pl

STEP_KEYS = (
    "step",
    "global_step",
    "_step",
    "train/global_step",
    "trainer/global_step",
    "training/global_step",
    "global_step/max_steps",
    "iter",
    "iteration",
    "current_steps",
    "time/total_timesteps",
    "total_timesteps",
    "misc/total_timesteps",
    "timesteps_total",
    "totalenvinteracts",
    "episode",  # before what may count the steps within one
    "episode_id",
    "frame",
    "timestep",
    "timesteps",
    "steps",
    "training_iteration",
)
"""Names of the step in lower case, the most telling first. ``epoch`` comes after all of them."""

MAY_BE_LENGTHS = frozenset({"frame", "timestep", "timesteps", "steps"})
"""Those of `STEP_KEYS` that may be the length of an episode."""

EPOCH_KEYS = ("epoch",)

BATCH_KEYS = ("batch", "batch_idx")
"""Names of the step of tables that count batches within epochs, where nothing else is a step."""

_EPISODE_KEYS = ("episode", "episode_id")
_ROUNDS = {
    **dict.fromkeys(("step", "iter", "iteration"), (*EPOCH_KEYS, *_EPISODE_KEYS)),
    **dict.fromkeys((*_EPISODE_KEYS, *BATCH_KEYS), EPOCH_KEYS),
}
"""What may be counted above a step."""

TIME_KEYS = ("wall_time", "wall time", "walltime", "timestamp", "_timestamp", "time", "date")

_AXIS_KEYS = frozenset({*STEP_KEYS, *EPOCH_KEYS, *TIME_KEYS})

NUMBER = lazy_pattern(
    r"\s*[+-]?(?:(?:\d+\.?\d*|\.\d+)(?:e[+-]?\d+)?|nan|inf(?:inity)?)\s*", re.IGNORECASE | re.ASCII
)
"""A number written out, as ``float`` reads it."""

_PLANNED_STEPS = "max_steps"  # tag of the 500 in a step logged as "12/500"
_LEARNING_RATES = ("lr", "learning_rate")
_MAX_STEPS = 2.0**53  # that a float counts without a gap
_MAX_NULL_SERIES = 1000  # whose nulls are told apart; in any further one a null means "not logged"


_FEW_RECORDS = 3  # in which held-out data were not measured yet rather than NaN
_HELD_OUT = HELD_OUT | {"testing"}

_NUMERIC = "n"
_TEXT = "t"
_NULL = "0"
_OTHER = "-"
_KIND = {float: _NUMERIC, int: _NUMERIC, str: _TEXT, type(None): _NULL} | dict.fromkeys(
    (bool, list, dict), _OTHER
)


def is_metrics(record: Mapping[str, Any]) -> bool:
    """Return whether this is surely a line of a metric log, because it has a step and a number."""
    has_number = any(_KIND[type(value)] == _NUMERIC for value in record.values())
    return has_number and named(record, (*STEP_KEYS, *EPOCH_KEYS)) is not None


def rounds_of(step: str) -> Sequence[str]:
    """Return names of what may be counted above ``step``, which begins anew in each of them."""
    return _ROUNDS.get(step.lower(), ())


def is_misspelt(name: str, word: str) -> bool:
    """Return whether a name is a word with one letter more, less, wrong or changed places with the next."""
    longer, shorter = sorted((name, word), key=len, reverse=True)
    if len(longer) == len(shorter) + 1:
        return any(longer[:at] + longer[at + 1 :] == shorter for at in range(len(longer)))
    if len(longer) != len(shorter):
        return False
    wrong = [at for at, letters in enumerate(zip(name, word, strict=True)) if len({*letters}) > 1]
    swapped = len(wrong) == 2 and name[wrong[0] : wrong[1] + 1] == word[wrong[1]] + word[wrong[0]]
    return len(wrong) == 1 or swapped


def named(names: Iterable[str], keys: Iterable[str]) -> str | None:
    """Return the name that equals the first possible key, whatever its case; None if no name equals a key."""
    return _named_key(tuple(names), tuple(keys))


@lru_cache(maxsize=1 << 10)  # there are few kinds of records, and many of each kind
def _named_key(names: tuple[str, ...], keys: tuple[str, ...]) -> str | None:
    by_key = {name.lower(): name for name in reversed(names)}
    return next((by_key[key] for key in keys if key in by_key), None)


class _RecordShape(msgspec.Struct, frozen=True):
    """How to read every record that has these names and kinds of values. Positions are in the record."""

    numeric: list[bool]  # which values are points as they stand
    names: list[str]  # of these points
    tags: list[int]
    texts: list[tuple[int, str]]  # which may hold a number
    nulls: list[str]
    step: int | None
    epoch: int | None
    counts_iterations: bool  # the step may begin anew in each epoch
    may_be_length: bool  # of an episode, which the step may be
    has_iteration: bool  # beside the step
    time: tuple[int, str] | None


class Records:
    """Makes points from records of one stream, given the memory of earlier ones (``{}`` for none)."""

    def __init__(self, memory: Mapping[str, Any]) -> None:
        self._axis = Axis(**memory.get("axis", {}))
        self._presence = _NullMeaning(dict(memory.get("presence", {})))
        self._shapes: dict[tuple[str, ...], _RecordShape] = {}
        self._tag_ids: dict[str, int] = {}
        self._tags: list[int] = []
        self._values: list[float] = []
        self._steps: list[int] = []
        self._times: list[float] = []
        self._counts: list[int] = []
        self._unit = ""  # what the steps count, where a record names it

    def __len__(self) -> int:
        return len(self._values)

    def memory(self) -> dict[str, Any]:
        """Return what the next records need to know of these; JSON-able."""
        return {"axis": asdict(self._axis), "presence": self._presence.always}

    def step_at(self, line: int) -> int:
        """Return the last step, in a log of which ``line`` is the last line."""
        return self._axis.step(None, None, line)

    def chunk(self, stream: str, restarted: bool) -> Chunk:
        """Return the points so far."""
        return Chunk(
            stream=stream,
            tags=list(self._tag_ids),
            tag=np.array(self._tags, dtype=np.uint32),
            step=np.repeat(np.array(self._steps, dtype=np.int64), self._counts),
            time=np.repeat(np.array(self._times, dtype=np.float64), self._counts),
            value=np.array(self._values, dtype=np.float64),
            restarted=restarted,
            unit=self._unit,
        )

    def add(self, record: Mapping[str, Any], line: int) -> None:
        """Add one record. Its line number is its step if no record has a step."""
        record = flattened(record)
        row = list(record.values())
        kinds = "".join(map(_KIND.__getitem__, map(type, row)))
        if _TEXT in kinds and (full := with_part(record, _AXIS_KEYS)) is not record:
            self.add(full, line)
            return
        earlier = self._shapes.get((*record, kinds))
        shape = earlier or self._learn(beside_held_out_loss([*record]), kinds)
        values_before = len(self._values)
        self._values.extend(compress(row, shape.numeric))
        self._tags.extend(shape.tags)
        if shape.nulls:
            is_early = line <= _FEW_RECORDS and bool(shape.names)
            for name in self._presence.not_a_number(shape.nulls, shape.names, is_early):
                self._point(name, math.nan)
        if earlier is None:
            self._shapes[*record, kinds] = shape
            self._presence.numbers(shape.names)
        for position, name in shape.texts:
            if NUMBER.fullmatch(row[position]):
                self._presence.numbers([name])
                self._point(name, float(row[position]))
        step = self._step(shape, row, line)
        time = self._record_time(shape, row)
        if count := len(self._values) - values_before:
            self._steps.append(step)
            self._times.append(time)
            self._counts.append(count)

    def rows(self, frame: "pl.DataFrame", stream: str, restarted: bool) -> Chunk | None:
        """Return the points of records given as rows of numbers; None if they must be added one by one."""
        shape = self._learn(frame.columns, _NUMERIC * frame.width)
        if shape.step is None or shape.counts_iterations or shape.may_be_length or not shape.names:
            return None
        if shape.has_iteration or self._axis.beside_iteration:
            return None
        step = frame[:, shape.step].to_numpy()
        times = np.full(len(step), math.nan)
        if shape.time:
            times = np.array([*map(seconds, frame[:, shape.time[0]])], dtype=np.float64)
        if (shape.time and np.isnan(times).any()) or not (np.abs(step) < _MAX_STEPS).all():
            return None
        steps = step.astype(np.int64)
        if (steps != step).any():
            return None
        self._presence.numbers(shape.names)
        self._axis.step(int(steps[-1]), None, 0)
        return Chunk.of_rows(
            stream, shape.names, steps, times, frame[shape.names].to_numpy(), restarted, self._unit
        )

    def _learn(self, names: list[str], kinds: str) -> _RecordShape:
        at = {n: i for i, (n, kind) in enumerate(zip(names, kinds, strict=True)) if kind in (_NUMERIC, _TEXT)}
        step, epoch, time = (named(at, keys) for keys in (STEP_KEYS, EPOCH_KEYS, TIME_KEYS))
        numeric = [k == _NUMERIC and n not in (step, time) for n, k in zip(names, kinds, strict=True)]
        points = list(compress(names, numeric))
        self._unit = (counter(step) if step else None) or self._unit
        return _RecordShape(
            numeric=numeric,
            names=points,
            tags=[self._tag_id(n) for n in points],
            texts=[(i, n) for n, i in at.items() if kinds[i] == _TEXT and n not in (step, time)],
            nulls=[n for n, k in zip(names, kinds, strict=True) if k == _NULL],
            step=at[step] if step else None,
            epoch=at[epoch] if epoch else None,
            counts_iterations=step == "iter",
            may_be_length=step in MAY_BE_LENGTHS,
            has_iteration=step == "step" and "iter" in at,
            time=(at[time], time) if time else None,
        )

    def _step(self, shape: _RecordShape, row: list[Any], line: int) -> int:
        epoch = None if shape.epoch is None else row[shape.epoch]
        count = None
        if shape.step is not None:
            count, planned = count_of(row[shape.step])
            if count is not None and shape.counts_iterations and epoch is not None:
                count = self._axis.iteration(count, epoch, planned)
                planned = None
            if planned is not None:
                self._point(_PLANNED_STEPS, planned)
        self._axis.beside_iteration |= shape.has_iteration
        if self._axis.beside_iteration and not shape.has_iteration:
            count = None  # MMEngine's validation, which counts epochs
        return self._axis.step(count, epoch, line, shape.may_be_length)

    def _record_time(self, shape: _RecordShape, row: list[Any]) -> float:
        if shape.time is None:
            return math.nan
        position, name = shape.time
        when = seconds(row[position])
        if when is None and isinstance(row[position], (int, float)):
            self._point(name, row[position])  # a duration, such as mmengine's seconds per iteration
        return math.nan if when is None else when

    def _point(self, name: str, value: float) -> None:
        self._tags.append(self._tag_id(name))
        self._values.append(value)

    def _tag_id(self, name: str) -> int:
        return self._tag_ids.setdefault(name, len(self._tag_ids))


class _NullMeaning(msgspec.Struct):
    """Distinguishes a null that stands for NaN from a null that means "not logged".

    ``always`` holds, for each series, whether every record that named it had a number for it. orjson writes
    NaN as null. So a null in a series that always had a number stands for NaN, unless the record is of
    another kind than those before: if it has a number that they lacked, or lacks the learning rate. Among the
    first records, where numbers stand beside it, it is held-out data that were measured once and then not.
    """

    always: dict[str, bool]

    def numbers(self, names: Iterable[str]) -> None:
        """Record that these series had a number."""
        for name in names:
            if name not in self.always and len(self.always) < _MAX_NULL_SERIES:
                self.always[name] = True

    def not_a_number(self, nulls: list[str], numeric: list[str], is_early: bool) -> list[str]:
        """Return which of the nulls stand for NaN in a record that has numbers for ``numeric``."""
        nans = [n for n in nulls if self.always.get(n)]
        if is_early and all(phase(name).lower() in _HELD_OUT for name in nulls):
            nans = []
        lacks_rate = any(n.rpartition("/")[2] in _LEARNING_RATES for n in nans)
        if nans and (lacks_rate or not all(map(self.always.get, numeric))):
            nans = []
        for name in nulls:
            if name not in nans and (name in self.always or len(self.always) < _MAX_NULL_SERIES):
                self.always[name] = False
        return nans


def seconds(value: float | str) -> float | None:
    """Return seconds since the epoch, from a number in s, ms, us or ns, or from an ISO date.

    A date without a time zone is in that of this machine, as loggers write it; "UTC" or "GMT" may follow it.
    """
    if isinstance(value, str):
        text = value.strip()
        text = f"{text[:-3].rstrip()}+00:00" if text[-3:] in ("UTC", "GMT") else text
        try:
            when = datetime.fromisoformat(text)
        except ValueError:
            return seconds(float(value)) if NUMBER.fullmatch(value) else None
        try:
            stamp = when.timestamp()
        except (ValueError, OverflowError, OSError):  # a year that the system's calendar does not have
            return None
        return stamp if 0 <= stamp < LATEST else None
    for unit in (1.0, 1e3, 1e6, 1e9):
        if 1e9 <= value / unit < 1e10:  # the years 2001 to 2286
            return value / unit
    return None
