"""Reads what a run printed, line by line: errors that end it, and whether it went on after one.

The position of a line is its number in its file. The state of the lines before it is kept, so the result
does not depend on how the lines were cut into polls.
"""

import math
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import islice
from typing import Any

import msgspec

from sentinel.catalogue import Signature
from sentinel.detectors.api import Severity
from sentinel.detectors.run_checks import Printed
from sentinel.runs.preemption import PREEMPTION_WORDS, preempts
from sentinel.runs.telling import telling
from sentinel.sources.base import Line
from sentinel.sources.console.bars import states
from sentinel.sources.console.passages import Passages

MAX_LINE = 500
"""Characters of a line that are read. This bounds the time that one line can cost."""

_WENT_ON = 50  # ordinary lines after an error show that the run went on; a launcher prints fewer at the end
_MAX_TRACEBACK = 500  # lines
_MAX_WRITERS = 64  # processes whose tracebacks are collected; further ones are ignored
_MAX_ORIGINS = 64
_LAST_LINES = 3
_LAST_CHARACTERS = 120

_TRACEBACK = "Traceback (most recent call last):"
_WRITER = re.compile(
    r"(?:\[(?:rank|default)?\d{1,5}\]:? ?|\s{0,4}\d{1,5}: (?=\S)|\([\w:.]{1,80} pid=\d{1,9}[^)]{0,60}\) ?)"
    r"(?:\[rank\d{1,5}\]: ?)?"
)  # torchrun, srun, Ray; and, behind what a launcher prints, PyTorch in a traceback
_BAR = re.compile(  # the speed, with which a bar of tqdm ends; it ends no line, so a traceback follows on it
    r"(?:/s|s/\w{1,30})(?:, [^\]]{0,200})?\] ?" + re.escape(_TRACEBACK)
)
_INDENTED = re.compile(r"\s(?!\s{0,3}\d)")  # and not srun's number of a process
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
    """A traceback that has begun. ``caught`` means that a logger announced it."""

    line: int
    caught: bool
    location: str = ""  # the last line of one's own code
    innermost: str = ""  # of anybody's code

    def add(self, line: str) -> None:
        """Add a line, which may tell a frame."""
        if frame := _FRAME.match(line, 0, MAX_LINE):
            place = f"{frame[1]}:{frame[2]}" + (f" in {frame[3]}" if frame[3] else "")
            self.innermost = place
            if not (self.location and _OF_A_LIBRARY.search(frame[1])):
                self.location = place


class Remark(msgspec.Struct):
    """A line that is worth knowing and ends nothing, and the entry whose signature it has."""

    entry: str
    text: str
    origin: str
    line: int


class _Origin(msgspec.Struct):
    """The state of one file of lines. ``ordinary`` counts the lines since the last error, if there is one."""

    lines: int = 0
    ordinary: int | None = None
    step: int | None = None  # at the last error
    announced: bool = False  # the last line announced a caught exception ...
    announced_by: str = ""  # ... of this writer ...
    announced_at: int | None = None  # ... at this step
    preempted: str = (
        ""  # the line that says that it is ended from outside; errors from then on follow from that
    )
    last: list[str] = []  # the last lines, shortened
    tracebacks: dict[str, _Traceback] = {}  # by writer

    @property
    def is_quiet(self) -> bool:
        """Whether most lines would change nothing."""
        return not self.tracebacks and self.ordinary is None

    def pass_on(self, lines: Sequence[str]) -> None:
        """Count lines that change nothing."""
        self.lines += len(lines)
        self.keep(lines)

    def keep(self, lines: Sequence[str]) -> None:
        """Remember the last of some lines."""
        last = (line[:_LAST_CHARACTERS] for line in reversed(lines) if line and not line.isspace())
        self.last = [*self.last, *[*islice(last, _LAST_LINES)][::-1]][-_LAST_LINES:]

    def pass_frames(self, lines: Sequence[str]) -> int:
        """Pass on lines that only go on with the one traceback that is open. Gives their number."""
        traceback = self.tracebacks.get("") if len(self.tracebacks) == 1 else None
        if traceback is None:
            return 0
        most = min(len(lines), traceback.line + _MAX_TRACEBACK - self.lines - 1)
        count = next((i for i in range(most) if not _INDENTED.match(lines[i])), max(0, most))
        told = [line for line in lines[:count] if not line.isspace()]
        for line in told:
            traceback.add(line)
        if told:
            self.announced = _CAUGHT.search(told[-1], 0, MAX_LINE) is not None
        self.pass_on(lines[:count])
        return count


class ConsoleState(msgspec.Struct):
    """The state of the console lines of a run. Its size is bounded, whatever the run prints.

    ``cursor`` says where reading the files beside the log stopped. ``signatures`` are those of the catalogue.
    """

    origins: dict[str, _Origin] = {}
    cursor: dict[str, Any] = {}
    remarks: dict[str, Remark] = {}  # the first line for each signature that ends nothing

    def scan_text(self, name: str, text: str, signatures: Sequence[Signature]) -> Iterator[Printed]:
        """Yield the news in the next whole lines of a file, given as text."""
        if (origin := self._origin(name)) is None:
            return
        # Keep what a terminal would show: a progress bar overwrites what precedes a carriage return.
        shown = [states(line.rstrip("\r"))[-1] for line in text.split("\n")[:-1]]
        yield from self._scan(name, origin, shown, lambda at: Line(math.nan, shown[at]), signatures)

    def scan(self, name: str, lines: Sequence[Line], signatures: Sequence[Signature]) -> Iterator[Printed]:
        """Yield the news in the next lines of one file."""
        if (origin := self._origin(name)) is not None:
            texts = lines.texts if isinstance(lines, Passages) else [line.text for line in lines]
            yield from self._scan(name, origin, texts, lines.__getitem__, signatures)

    def _scan(
        self,
        name: str,
        origin: _Origin,
        texts: Sequence[str],
        line_at: Callable[[int], Line],
        signatures: Sequence[Signature],
    ) -> Iterator[Printed]:
        """Yield the news in the next lines, of which only those are looked at that may bring any."""
        at = 0
        wanted = [signature.text for signature in signatures if signature.key not in self.remarks]
        for place in telling(texts, (_TRACEBACK, *PREEMPTION_WORDS, *wanted)):
            while at < place and not origin.is_quiet:
                if passed := origin.pass_frames(texts[at : min(place, at + _MAX_TRACEBACK)]):
                    at += passed
                    continue
                yield from self._look_at(name, origin, texts[at], partial(line_at, at), ())
                at += 1
            if at <= place:
                origin.pass_on(texts[at:place])
                yield from self._look_at(name, origin, texts[place], partial(line_at, place), signatures)
                at = place + 1
        origin.pass_on(texts[at:])  # without text

    def _look_at(
        self,
        name: str,
        origin: _Origin,
        whole: str,
        line: Callable[[], Line],
        signatures: Sequence[Signature],
    ) -> Iterator[Printed]:
        """Yield the news in one line. Its time and step are read only if they matter."""
        origin.lines += 1
        text = whole[:MAX_LINE]
        if not text or text.isspace():
            return
        origin.keep([text])
        near = [signature for signature in signatures if signature.text in text]
        error = _error(origin, text, near, line)
        if preempts(text) or (error is not None and origin.preempted):
            if not origin.preempted:
                yield _printed(origin, name, line(), text, Severity.INFO, preempted=True)
            origin.preempted = origin.preempted or text
            origin.ordinary = 0
            origin.step = line().step
            return
        if error is not None:
            origin.ordinary = 0
            origin.step = line().step
            place = error.location
            entries = error.entries
            yield _printed(
                origin, name, line(), error.text, error.severity, location=place, catalogue=entries
            )
            return
        for known in near:
            if known.severity is Severity.INFO and known.key not in self.remarks and known.is_in(text):
                self.remarks[known.key] = Remark(known.entry, text, name, origin.lines)
        if origin.ordinary is not None and not origin.tracebacks:
            origin.ordinary += 1
            step = line().step
            if origin.ordinary == _WENT_ON or (step is not None and step != origin.step):
                origin.ordinary = None
                origin.preempted = ""
                yield _printed(origin, name, line(), text, Severity.CLEAN)

    @property
    def last_lines(self) -> str:
        """The last lines of the file with most lines; empty if nothing was printed."""
        fullest = max(self.origins.values(), key=lambda origin: origin.lines, default=_Origin())
        return "\n".join(fullest.last)

    @property
    def preempted(self) -> str:
        """The line by which the run says that it is ended from outside; empty if none does."""
        return next((origin.preempted for origin in self.origins.values() if origin.preempted), "")

    def _origin(self, name: str) -> _Origin | None:
        """Return the state of a file; None if there are too many files."""
        if name not in self.origins and len(self.origins) >= _MAX_ORIGINS:
            return None
        return self.origins.setdefault(name, _Origin())


def _printed(origin: _Origin, name: str, line: Line, text: str, severity: Severity, **more: Any) -> Printed:
    time = line.time if math.isfinite(line.time) else None
    return Printed(name, origin.lines, text, line.step, time, severity, **more)


@dataclass(frozen=True)
class _Error:
    """An error that one line states, or that the last line of a traceback ends."""

    text: str
    severity: Severity
    location: str
    entries: tuple[str, ...]


def _error(
    origin: _Origin, whole: str, signatures: Sequence[Signature], line: Callable[[], Line]
) -> _Error | None:
    """Return the error that the line completes, if any. Records a traceback that the line begins or
    continues.
    """
    prefix = _WRITER.match(whole)
    writer, text = (prefix[0], whole[prefix.end() :]) if prefix else ("", whole)
    if text.startswith(_TRACEBACK) or (_TRACEBACK in text and _BAR.search(text)):
        if len(origin.tracebacks) < _MAX_WRITERS:
            # Between lines of two steps, lines with metrics were printed.
            caught = origin.announced and (origin.announced_by, origin.announced_at) == (writer, line().step)
            origin.tracebacks[writer] = _Traceback(origin.lines, caught)
        return None
    traceback = origin.tracebacks.get(writer)
    origin.announced = _CAUGHT.search(text) is not None
    if origin.announced:
        origin.announced_by = writer
        origin.announced_at = line().step
    if traceback is not None:
        if text[:1].isspace() and origin.lines - traceback.line < _MAX_TRACEBACK:
            traceback.add(text)
            return None
        del origin.tracebacks[writer]
        if _EXCEPTION.match(text):
            if traceback.caught or text.startswith(_WANTED):
                return None
            known = _known(signatures, text, f"{traceback.location}\n{traceback.innermost}")
            severity = max((signature.severity for signature in known), default=Severity.CRITICAL)
            place = traceback.location or "at its top"
            return _Error(text, severity, place, tuple(dict.fromkeys(signature.entry for signature in known)))
    if not _WARNING.search(text) and (known := _known(signatures, text, "")):
        entries = tuple(dict.fromkeys(signature.entry for signature in known))
        return _Error(text, max(signature.severity for signature in known), "", entries)
    return None


def _known(signatures: Sequence[Signature], line: str, place: str) -> list[Signature]:
    """Return the signatures of an error that a line has; first those that ask where it was raised."""
    known = [s for s in signatures if s.severity > Severity.INFO and s.is_in(line, place)]
    return sorted(known, key=lambda signature: signature.raised is None)
