"""What stands above a line: the step or epoch that lines before it told, and the part of the data."""

import re
from collections.abc import Mapping
from typing import Any

from sentinel.common.lazy_pattern import lazy_pattern

MAX_WRITERS = 64
"""Processes that print; what further ones print is read as that of one."""

MAX_EPOCHS_OF_STEP = 2
"""Epochs that may begin before a step that stands above no longer counts."""

_PART_ALONE = lazy_pattern(
    r"(train(?:ing)?|valid(?:ation)?|val|test)(?: (?:set|error|results?|metrics|performance))?:",
    re.IGNORECASE,
)
"""A line that only says which part of the data the next one is about."""

_EVALUATION_BEGINS = lazy_pattern(
    r"(?:eval(?:uation)?|validation|testing) (?:begins?|starts?)\W*", re.IGNORECASE
)
"""A line that only says that the next ones are of held-out data, as PaddlePaddle prints it."""

_EVALUATION_ENDS = lazy_pattern(
    r"(?:eval(?:uation)?|validation|testing) (?:samples|ends?|done|finished)\b|epoch \d", re.IGNORECASE
)
"""How the first line behind these begins."""

Counters = Mapping[str, tuple[int, int | None]]
"""What a line counts: where each kind of counter stands, and where it will end if the line says so."""


class CountersAbove:
    """The step under which the next lines of each writer stand, given the state before (``{}`` for none).

    Of a writer it is kept as ``[step, unit, counters so far, epoch, epochs since the step]``.
    """

    def __init__(self, state: Mapping[str, Any]) -> None:
        self._of_writers: dict[str, list[Any]] = {k: list(v) for k, v in state.get("context", {}).items()}

    def dump(self) -> dict[str, Any]:
        """Return all that the next lines need to know, JSON-able."""
        return {"context": self._of_writers}

    def writer(self, name: str) -> str:
        """Return the name under which a process is known."""
        is_known = name in self._of_writers or len(self._of_writers) < MAX_WRITERS
        return name if is_known else "more"

    def of(self, writer: str) -> list[Any] | None:
        """Return step and unit above the next line of a writer, and how many counters came so far."""
        above = self._of_writers.get(writer)
        return above and above[:3]

    def epoch(self, writer: str) -> int:
        """Return the epoch that the lines of a writer told last; 0 if they told none."""
        above = self._of_writers.get(writer)
        return int(above[3]) if above else 0

    def move(self, writer: str, counters: Counters) -> None:
        """Move the step under which the next lines of a writer stand.

        A step stays through the epochs that begin after it, but for many of them.
        """
        step, unit = _leading(counters)
        above = self._above(writer)
        if not unit:
            return
        if "epoch" in counters and counters["epoch"][0] != above[3]:
            above[3] = counters["epoch"][0]
            above[4] += 1
        if unit != "epoch" or above[1] != "step" or above[4] > MAX_EPOCHS_OF_STEP:
            above[2] += [step, unit] != above[:2]
            above[0] = step
            above[1] = unit
            above[4] = 0 if unit == "step" else above[4]

    def lead(self, writer: str, step: int) -> None:
        """Remember the step of a line of the training, for lines below that tell none."""
        above = self._above(writer)
        above[2] += [step, "step"] != above[:2]
        above[0] = step
        above[1] = "step"
        above[4] = 0

    def _above(self, writer: str) -> list[Any]:
        return self._of_writers.setdefault(writer, [0, "", 0, 0, 0])


def _leading(counters: Counters) -> tuple[int, str]:
    """Return the count under which lines below stand, and its kind; no kind if there is none."""
    for kind in ("step", "episode", "epoch"):
        if kind in counters:
            return counters[kind][0], kind
    return 0, ""


class PartAbove:
    """The part of the data of which the lines above said that the next ones are."""

    def __init__(self, state: Mapping[str, Any]) -> None:
        self._part: str = state.get("part", "")  # of the next line
        self._evaluates: bool = state.get("evaluates", False)  # in all lines until its end

    def dump(self) -> dict[str, Any]:
        """Return all that the next lines need to know, JSON-able."""
        return {"part": self._part, "evaluates": self._evaluates}

    def before(self, line: str) -> str:
        """Return a line with the part of which it is."""
        if self._evaluates and _EVALUATION_ENDS.match(line.lstrip()):
            self._evaluates = False
        part = self._part or ("eval" if self._evaluates else "")
        return f"{part} {line.lstrip()}" if part else line

    def read(self, line: str, has_numbers: bool) -> None:
        """Learn from a line that holds no numbers of which part the next ones are."""
        heading = None if has_numbers else _PART_ALONE.fullmatch(line.strip())
        self._part = heading[1] if heading else ""
        self._evaluates |= not has_numbers and _EVALUATION_BEGINS.fullmatch(line.strip()) is not None
