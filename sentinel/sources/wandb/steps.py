"""Decides to which step the numbers of a W&B run belong.

wandb counts the calls of ``log`` in ``_step``. This orders a run, but is rarely its training step. The step
of a number is, in order of precedence: the value of the axis that ``define_metric`` gives its name; a number
in its record with a usual name of the step; the last such number in an earlier record; ``_step``.

A step that falls to 0 begins the training again, if its record holds a metric that was logged before. Else it
is what Lightning logs of a test after the training, or a summary, and belongs to the last step.
"""

from collections.abc import Collection, Mapping
from itertools import compress
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sentinel.sources.base import Chunk
from sentinel.sources.readers.plain import plain_times, whole
from sentinel.sources.readers.records import EPOCH_KEYS, STEP_KEYS
from sentinel.sources.wandb.history import Groups, Numbers

COUNTER = "_step"

_USUAL_AXES = [key for key in STEP_KEYS if key != COUNTER]
_MAX_DEFINED = 4096  # names with an axis of their own
_MAX_LOGGED = 4096  # names of metrics that are remembered

_Floats = NDArray[np.float64]


def points(stream: str, numbers: Numbers, rows: int, steps: "Steps") -> Chunk:
    """Return the metrics among the numbers of ``rows`` records: neither wandb's own nor a step."""
    step, is_step = steps.of(numbers, rows)
    time = plain_times(numbers.by_row("_timestamp", rows))[numbers.row]
    public = np.array([not name.startswith("_") for name in numbers.names], np.bool_)
    is_public = public[numbers.name] & ~is_step
    used = np.bincount(numbers.name[is_public], minlength=len(numbers.names)) > 0
    tag = (np.cumsum(used) - 1)[numbers.name[is_public]].astype(np.uint32)
    tags = list(compress(numbers.names, used))
    return Chunk(stream, tags, tag, step[is_public], time[is_public], numbers.value[is_public])


class Steps:
    """The steps of one run, given the memory of earlier records (``{}`` for none)."""

    def __init__(self, memory: Mapping[str, Any]) -> None:
        self._axes: dict[str, str] = dict(memory.get("axes", {}))  # by name, or by its beginning and "*"
        self._last: dict[str, int] = dict(
            memory.get("last", {})
        )  # value of each axis; of a usual one under ""
        self._fractions: set[str] = set(memory.get("fractions", ()))  # axes that are none
        self._logged: set[str] = set(memory.get("logged", ()))  # metrics of the training
        self._values: set[str] = set()  # all axes
        self._lengths: set[int] = set()  # of what stands before a "*"
        for name, axis in self._axes.items():
            self._learn(name, axis)

    def memory(self) -> dict[str, Any]:
        """Return what the next records need to know of these; JSON-able."""
        fractions = sorted(self._fractions)
        logged = sorted(self._logged)
        return {"axes": self._axes, "last": self._last, "fractions": fractions, "logged": logged}

    def changed_by(self, name: str, axis: str) -> bool:
        """Return whether this definition says something new."""
        return bool(axis) and self._axis(name) != axis and len(self._axes) < _MAX_DEFINED

    def define(self, name: str, axis: str) -> None:
        """Record that numbers of this name are logged over this axis. The name may end in ``*``."""
        self._axes[name] = axis
        self._learn(name, axis)

    def _learn(self, name: str, axis: str) -> None:
        self._values.add(axis)
        if name.endswith("*"):
            self._lengths.add(len(name) - 1)

    def of(self, numbers: Numbers, rows: int) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
        """Return the step of each number, and which numbers are themselves the step of their record."""
        usual = np.full(rows, np.nan)
        step_name = np.full(rows, -1)  # by which name
        for key in _USUAL_AXES:
            if key in numbers.index:
                counts = _whole_counts(numbers.by_row(key, rows))
                new = np.isnan(usual) & ~np.isnan(counts)
                usual[new] = counts[new]
                step_name[new] = numbers.index[key]
        counter = self._filled(COUNTER, _whole_counts(numbers.by_row(COUNTER, rows)))
        metrics = _MetricsOfRecords(numbers, rows, self._values)
        usual = self._filled("", self._onward("", usual, metrics))
        by_row = np.where(np.isnan(usual), np.nan_to_num(counter), usual)
        step = by_row[numbers.row]
        axes = [self._axis(name) for name in numbers.names]
        used = sorted({*filter(None, axes), *self._values & numbers.index.keys()} - self._fractions)
        axis_indices = {axis: i for i, axis in enumerate(used)}
        groups = Groups(
            np.array([axis_indices.get(axis or "", len(used)) for axis in axes], np.int64)[numbers.name]
        )
        for axis in used:
            counts = self._axis_counts(axis, numbers.by_row(axis, rows), metrics)
            at = groups.of(axis_indices[axis])
            of_axis = counts[numbers.row[at]]
            step[at] = np.where(np.isnan(of_axis), step[at], of_axis)
        if self._last.keys() - {COUNTER}:
            new = [name for name in metrics.of_training() if name not in self._logged]
            self._logged.update(new[: _MAX_LOGGED - len(self._logged)])
        return step.astype(np.int64), numbers.name == step_name[numbers.row]

    def _axis(self, name: str) -> str | None:
        """Return the axis of a name: its own, or that of the longest pattern that matches."""
        if name in self._axes:
            return self._axes[name]
        patterns = (
            f"{name[:length]}*" for length in sorted(self._lengths, reverse=True) if length <= len(name)
        )
        return next((self._axes[pattern] for pattern in patterns if pattern in self._axes), None)

    def _axis_counts(self, axis: str, values: _Floats, metrics: "_MetricsOfRecords") -> _Floats:
        """Return the axis' value in each record; NaN before its first value and after a fraction."""
        counts = _whole_counts(values)
        filled = self._filled(axis, self._onward(axis, counts, metrics))
        fraction = np.isfinite(values) & np.isnan(counts)
        if fraction.any():
            self._fractions.add(axis)
            filled[int(fraction.argmax()) :] = np.nan
        return filled

    def _onward(self, axis: str, counts: _Floats, metrics: "_MetricsOfRecords") -> _Floats:
        """Return the counts without each 0 of a record that adds new metrics to the last step."""
        last = self._last.get(axis, 0)
        for row in np.flatnonzero(~np.isnan(counts)).tolist() if (counts == 0).any() else ():
            if counts[row] == 0 and last > 0 and metrics.are_new(row, self._logged):
                counts[row] = np.nan
            else:
                last = counts[row]
        return counts

    def _filled(self, axis: str, counts: _Floats) -> _Floats:
        """Return the newest value at each record; NaN before the first."""
        values = np.append(self._last.get(axis, np.nan), counts)
        latest = np.maximum.accumulate(np.where(np.isnan(values), 0, np.arange(len(values))))
        filled = values[latest]
        if not np.isnan(filled[-1]):
            self._last[axis] = int(filled[-1])
        return filled[1:]


class _MetricsOfRecords:
    """The metrics in some records, without steps and epochs."""

    def __init__(self, numbers: Numbers, rows: int, axes: Collection[str]) -> None:
        counts = {*STEP_KEYS, *EPOCH_KEYS, *axes}
        is_metric = [not name.startswith("_") and name not in counts for name in numbers.names]
        is_metric_point = np.array(is_metric, np.bool_)[numbers.name]
        self._names = numbers.names
        self._name = numbers.name[is_metric_point]
        self._row = numbers.row[is_metric_point]
        self._after = np.zeros(rows, np.bool_)  # which records come after the training

    def are_new(self, row: int, logged: Collection[str]) -> bool:
        """Return whether a record repeats no metric that the training ``logged`` before or in these."""
        names = {self._names[i] for i in self._name[self._row == row].tolist()}
        new = bool(names) and names.isdisjoint(logged) and names.isdisjoint(self.of_training(row))
        self._after[row] |= new
        return new

    def of_training(self, before: int | None = None) -> list[str]:
        """Return the names in the records of the training, or in those before one of them, in their order."""
        end = len(self._after) if before is None else before
        positions = self._name[~self._after[self._row] & (self._row < end)]
        names, first = np.unique(positions, return_index=True)
        return [self._names[i] for i in names[np.argsort(first)].tolist()]


def _whole_counts(values: _Floats) -> _Floats:
    """Return the values that count something; NaN for the others."""
    return np.where(whole(values), values, np.nan)
