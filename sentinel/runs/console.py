"""What a run printed, line by line: errors that end it, and whether it went on after one.

The position of a line is its number in its file, and what is known of the lines before it is kept, so that
the same lines say the same however they were cut into polls.
"""

import math
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import msgspec

from detectors.api import Severity
from detectors.checks import Printed
from sentinel.catalogue import Signature
from sentinel.sources.base import Line

LONGEST_LINE = 500
"""Characters that are looked at, which bounds the time that a line can cost."""

_WENT_ON = 50  # ordinary lines after an error; what launchers and loggers print of an end is shorter
_LONGEST_TRACEBACK = 500  # lines
_MOST_WRITERS = 64  # processes whose tracebacks are put together; one of more is not looked at
_MOST_ORIGINS = 64

_TRACEBACK = "Traceback (most recent call last):"
_WRITER = re.compile(
    r"(?:\[(?:rank|default)?\d{1,5}\]:? ?|\s{0,4}\d{1,5}: (?=\S)|\([\w:.]{1,80} pid=\d{1,9}[^)]{0,60}\) ?)"
)  # torchrun, srun, Ray
_FRAME = re.compile(r'\s{1,8}File "([^"]{1,300})", line (\d{1,9})(?:, in (.{1,100}))?')
_OF_A_LIBRARY = re.compile(r"[/\\](?:site|dist)-packages[/\\]|[/\\]lib[/\\]python3|<frozen")
_EXCEPTION = re.compile(r"[A-Za-z_][\w.]{0,150}(?::\s|:?$)")
_CAUGHT = re.compile(
    r"\b(?:ERROR|WARN|WARNING|CRITICAL)\b|Exception (?:ignored )?in|Logging error"
    r"|following (?:error|exception)|^\[?[WE] ?\d{4}"  # optuna, glog
)
_WARNING = re.compile(r"\b(?:WARN|WARNING)\b")
_WANTED = ("KeyboardInterrupt", "SystemExit", "GeneratorExit")


class _Traceback(msgspec.Struct):
    """One that has begun: ``caught`` where a logger announced it."""

    line: int
    caught: bool
    place: str = ""


class _Origin(msgspec.Struct):
    """What is known of one file of lines. ``ordinary`` counts the lines since the last error, if any."""

    lines: int = 0
    ordinary: int | None = None
    step: int | None = None  # at the last error
    announced: bool = False  # by the last line, that an exception was caught
    tracebacks: dict[str, _Traceback] = {}  # by writer


class Console(msgspec.Struct):
    """The state of a run's console lines, which is bounded, whatever is printed.

    ``cursor`` is where reading the files beside the log stopped.
    """

    origins: dict[str, _Origin] = {}
    cursor: dict[str, Any] = {}

    def take_text(self, name: str, text: str, signatures: Sequence[Signature]) -> Iterator[Printed]:
        """What the next whole lines of a file bring, given as they stand in it."""
        if (origin := self._origin(name)) is None:
            return
        quiet = not origin.tracebacks and origin.ordinary is None and _TRACEBACK not in text
        lines = text.split("\n")[:-1]
        if quiet and lines and not any(one.may_be_in(text) for one in signatures):
            skipped, lines = len(lines) - 1, lines[-1:]  # the last line may announce what the next ones bring
            origin.lines += skipped
        # What a progress bar overwrote is gone.
        shown = (line.rstrip("\r").rpartition("\r")[2] for line in lines)
        yield from self.take(name, [Line(math.nan, line) for line in shown], signatures)

    def take(self, name: str, lines: Sequence[Line], signatures: Sequence[Signature]) -> Iterator[Printed]:
        """What the next lines of one file bring."""
        if (origin := self._origin(name)) is None:
            return
        for line in lines:
            origin.lines += 1
            text = line.text[:LONGEST_LINE]
            if not text or text.isspace():
                continue
            time = line.time if math.isfinite(line.time) else None
            if (error := _error(origin, text, signatures)) is not None:
                origin.ordinary, origin.step = 0, line.step
                place, entries = error.place, error.entries
                yield Printed(name, origin.lines, error.text, line.step, time, error.severity, place, entries)
            elif origin.ordinary is not None and not origin.tracebacks:
                origin.ordinary += 1
                trains_on = line.step is not None and line.step != origin.step
                if origin.ordinary == _WENT_ON or trains_on:
                    origin.ordinary = None
                    yield Printed(name, origin.lines, text, line.step, time, Severity.CLEAN)

    def _origin(self, name: str) -> _Origin | None:
        """What is known of a file; None for one too many."""
        if name not in self.origins and len(self.origins) >= _MOST_ORIGINS:
            return None
        return self.origins.setdefault(name, _Origin())


@dataclass(frozen=True)
class _Error:
    """An error that a line ends or is."""

    text: str
    severity: Severity
    place: str
    entries: tuple[str, ...]


def _error(origin: _Origin, line: str, signatures: Sequence[Signature]) -> _Error | None:
    """The error that the line completes; takes note of a traceback that it begins or goes on."""
    found = _WRITER.match(line)
    writer, text = (found[0], line[found.end() :]) if found else ("", line)
    if text.startswith(_TRACEBACK):
        if len(origin.tracebacks) < _MOST_WRITERS:
            origin.tracebacks[writer] = _Traceback(origin.lines, origin.announced)
        return None
    traceback = origin.tracebacks.get(writer)
    origin.announced = _CAUGHT.search(text) is not None
    if traceback is not None:
        if text[:1].isspace() and origin.lines - traceback.line < _LONGEST_TRACEBACK:
            if (frame := _FRAME.match(text)) and not (traceback.place and _OF_A_LIBRARY.search(frame[1])):
                traceback.place = f"{frame[1]}:{frame[2]}" + (f" in {frame[3]}" if frame[3] else "")
            return None
        del origin.tracebacks[writer]
        if _EXCEPTION.match(text):
            if traceback.caught or text.startswith(_WANTED):
                return None
            known = [one for one in signatures if one.pattern.search(text)]
            severity = max((one.severity for one in known), default=Severity.CRITICAL)
            place = traceback.place or "at its top"
            return _Error(text, severity, place, tuple(dict.fromkeys(one.entry for one in known)))
    if _WARNING.search(text):
        return None
    if known := [one for one in signatures if one.pattern.search(text)]:
        entries = tuple(dict.fromkeys(one.entry for one in known))
        return _Error(text, max(one.severity for one in known), "", entries)
    return None
