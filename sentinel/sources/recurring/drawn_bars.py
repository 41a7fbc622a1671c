"""Progress bars between the lines: how far the longest one came, and the rows that wait for it.

A bar that is drawn again in the same second tells nothing new. A line that names no step but its epoch, as
Hugging Face's Trainer prints it, has the step of the bar that is drawn behind it.
"""

from collections.abc import Mapping
from typing import Any

from sentinel.sources.readers.measured_rows import Row
from sentinel.sources.readers.printed_numbers import MAX_STEP, count
from sentinel.sources.readers.slots import PART
from sentinel.sources.readers.templates import Template
from sentinel.sources.recurring.above import MAX_WRITERS

MAX_KEY = 400
"""Characters of what is remembered of a bar."""

MAX_LATE = 128
"""Rows that wait for the bar that shows their step."""

MAX_DRAWN = 512
"""Bars that are remembered."""


class DrawnBars:
    """The bars of each writer, given the state of those before (``{}`` for none)."""

    def __init__(self, state: Mapping[str, Any]) -> None:
        # writer -> count and total of the longest bar
        self._longest: dict[str, list[int]] = {k: list(v) for k, v in state.get("bars", {}).items()}
        # writer -> rows that wait for it
        self._late: dict[str, list[list[Any]]] = {k: list(v) for k, v in state.get("late", {}).items()}
        # bar -> its time, its count and what it shows
        self._drawn: dict[str, list[Any]] = {k: list(v) for k, v in state.get("elapsed", {}).items()}

    def dump(self) -> dict[str, Any]:
        """Return all that the next lines need to know, JSON-able."""
        return {"bars": self._longest, "late": self._late, "elapsed": self._drawn}

    def count(self, writer: str) -> int | None:
        """Return how far the longest bar of a writer came; None if it drew none."""
        return self._longest[writer][0] if writer in self._longest else None

    def repeats(self, plan: Template, numbers: list[str], writer: str, is_redrawn: bool) -> bool:
        """Return whether a bar that was drawn in the same second goes on, or only says the same again."""
        key = f"{writer} {plan.names}"[:MAX_KEY]
        value = -1
        is_full = False
        for at, kind, total in plan.counters:
            if kind == PART:
                value = count(numbers[at]) or 0
                is_full = total >= 0 and value == count(numbers[total])
        state_of_bar = [numbers[plan.elapsed], value, " ".join(numbers)[:MAX_KEY]]
        last = self._drawn.get(key)
        if len(self._drawn) > MAX_DRAWN:
            self._drawn.clear()
        is_same_second = last is not None and last[0] == state_of_bar[0] and not is_full and value > last[1]
        if is_redrawn and last is not None and (last[2] == state_of_bar[2] or is_same_second):
            return True
        self._drawn[key] = state_of_bar
        return False

    def draw(self, plan: Template, numbers: list[str], writer: str) -> list[Row]:
        """Remember how far the longest bar came, and return the rows that waited for it."""
        rows = []
        for at, kind, total in plan.counters:
            value = count(numbers[at])
            total_count = count(numbers[total]) if total >= 0 else None
            if kind == PART and value is not None and total_count is not None:
                longest = self._longest.get(writer, [0, 0])
                is_known = writer in self._longest or len(self._longest) < MAX_WRITERS
                if total_count >= longest[1] and is_known:
                    rows += self._released(writer, value or longest[0])
                    self._longest[writer] = [value or longest[0], total_count]
        return rows

    def wait(self, row: Row) -> list[Row]:
        """Let a row wait for the bar that shows its step. Return those for which no bar comes."""
        late = self._late.setdefault(row.writer, [])
        epoch = repr(row.values[row.names.index("epoch")])
        values = [*map(repr, row.values)]  # JSON has no NaN
        late.append([row.record, row.names, values, row.step, row.unit, row.stamp, row.line, epoch])
        if len(late) < MAX_LATE:
            return []
        rows = self._released(row.writer, 0)
        self._longest[row.writer] = [0, 0]
        return rows

    def last_rows(self) -> list[Row]:
        """Return the rows that still wait, now that no more bars come."""
        return [row for writer in [*self._late] for row in self._released(writer, self._longest[writer][0])]

    def _released(self, writer: str, value: int) -> list[Row]:
        """Return the rows that waited for a bar, with the step that it shows or that their epochs tell."""
        rows = []
        late = self._late.pop(writer, [])
        epochs = [float(row[-1]) for row in late]
        for (record, names, values, step, unit, stamp, line, _), epoch in zip(late, epochs, strict=True):
            shown = value
            if len(late) > 1 and 0 <= epoch <= epochs[-1] < MAX_STEP and epochs[-1] > 0:
                shown = round(epoch / epochs[-1] * value)
            told = tuple(map(float, values))
            rows.append(Row(record, writer, tuple(names), told, shown if value else step, unit, stamp, line))
        return rows
