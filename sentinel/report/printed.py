"""The console lines around the onset of an incident."""

import math
import re
from collections.abc import Iterable, Mapping, Sequence

import msgspec

from sentinel.common.secrets import masked_text
from sentinel.common.text import clean_text
from sentinel.incidents.incident import Incident
from sentinel.runs.console_history import printed_lines
from sentinel.runs.log import RunLog
from sentinel.sources.base import Line

_LINES_BEFORE = 6  # the onset
_LINES_AFTER = 10  # its first line is the onset
_MAX_SEARCHED_CHARACTERS = 2000  # of a line


class ConsoleExcerpt(msgspec.Struct, frozen=True):
    """Lines that follow one another. ``first`` is the number of the first one, ``at`` of the one meant."""

    origin: str  # the name of the file; empty for the log itself
    first: int
    at: int
    lines: Sequence[str]


class Transcript:
    """What a run printed, read once more from its files on demand."""

    def __init__(self, log: RunLog) -> None:
        self._log = log
        self._read: Mapping[str, Sequence[Line]] | None = None

    def around(self, incident: Incident) -> ConsoleExcerpt | None:
        """Return the lines at the onset; None if nothing tells which ones these are.

        An incident that is about a line names it. Others are found by the time, else by the step of a line.
        """
        if self._read is None:
            self._read = printed_lines(self._log)
        evidence = incident.evidence
        file = incident.tag if isinstance(evidence.get("line"), int) and incident.tag in self._read else None
        if file is not None:
            return _excerpt(file, self._read[file], evidence["line"] - 1)
        for origin, lines in self._read.items():
            if (at := _onset_line(lines, incident)) is not None:
                return _excerpt(origin, lines, at)
        return None


def _onset_line(lines: Sequence[Line], incident: Incident) -> int | None:
    """Return the index of the first line from the onset."""
    began = incident.onset_time
    times = [(index, line.time) for index, line in enumerate(lines) if math.isfinite(line.time)]
    if began is not None and times and times[0][1] <= began <= times[-1][1]:
        return next(index for index, time in times if time >= began)
    if any(line.step is not None for line in lines):
        steps = ((index, line.step) for index, line in enumerate(lines) if line.step is not None)
        return next((index for index, step in steps if step >= incident.onset_step), None)
    return _by_number(lines, incident.onset_step)


def _by_number(lines: Iterable[Line], step: int) -> int | None:
    """Return the index of the first line that counts this step: "step 120", "iter=120", "120/500"."""
    step_pattern = re.compile(
        rf"\b(?:(?:global_?)?step|iter(?:ation)?|update|it)s?\b\W{{0,3}}0*{step}(?![\d.])|(?<![\d/.]){step}/\d",
        re.IGNORECASE,
    )
    return next(
        (
            index
            for index, line in enumerate(lines)
            if step_pattern.search(line.text[:_MAX_SEARCHED_CHARACTERS])
        ),
        None,
    )


def _excerpt(origin: str, lines: Sequence[Line], at: int) -> ConsoleExcerpt:
    begin = max(at - _LINES_BEFORE, 0)
    texts = []
    for printed_line in lines[begin : at + _LINES_AFTER]:
        indentation = len(printed_line.text) - len(printed_line.text.lstrip(" "))
        texts.append(
            " " * min(indentation, 16)
            + clean_text(masked_text(printed_line.text[:_MAX_SEARCHED_CHARACTERS]), 200)
        )
    return ConsoleExcerpt(clean_text(origin), begin + 1, at + 1, texts)
