"""Reads what a run printed, line by line: errors that end it, and whether it went on after one.

The position of a line is its number in its file. The state of the lines before it is kept, so the result
does not depend on how the lines were cut into polls.
"""

import math
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from itertools import islice
from typing import Any

import msgspec
import polars as pl
from msgspec.structs import replace

from sentinel.catalogue import Signature
from sentinel.common.last_words import FAILED
from sentinel.common.lazy_pattern import lazy_pattern
from sentinel.common.secrets import masked_text
from sentinel.detectors.api import Severity
from sentinel.detectors.run_checks import Printed
from sentinel.runs.preemption import PREEMPTION_WORDS, preempts
from sentinel.sources.base import Line
from sentinel.sources.console.bars import states
from sentinel.sources.console.passages import ROW, Passages

MAX_LINE = 500
"""Characters of a line that are read. This bounds the time that one line can cost."""

_MIN_ORDINARY_LINES = 50  # after an error, that show that the run went on; a launcher prints fewer at the end
_MAX_TRACEBACK_LINES = 500
_MAX_WRAPPED_LINES = 12  # of a traceback that is cut at a width, in a row, which do not begin with blanks
_MAX_WRITERS = 64  # processes whose tracebacks are collected; further ones are ignored
_MAX_ORIGINS = 64  # files that are read; further ones are ignored
_MAX_LAST_LINES = 3  # of a file that are remembered
_MAX_LAST_CHARACTERS = 120  # of each of them

_HEADING = "Traceback (most recent call last)"
_TRACEBACK = f"{_HEADING}:"
_WRITER = lazy_pattern(
    r"(?:\[(?:rank|default)?\d{1,5}\]:? ?|\s{0,4}\d{1,5}: (?=\S)|\([\w:.]{1,80} pid=\d{1,9}[^)]{0,60}\) ?)"
    r"(?:\[rank\d{1,5}\]: ?)?"
)  # torchrun, srun, Ray; and, behind what a launcher prints, PyTorch in a traceback
_POWERSHELL = lazy_pattern(r"(?:[\w.-]{1,40}|.{1,200}\.exe) : " + re.escape(_TRACEBACK))
"""A traceback as PowerShell redirects it: behind the name or the path of the program, with lines of its own,
and cut at the width of the terminal."""

_LOGGED = lazy_pattern(r".{0,200}\b(?:ERROR|CRITICAL)\b[\s\]:|-]{1,9}" + re.escape(_TRACEBACK) + r"\s*$")
"""The heading of a traceback that a logger printed as its message."""

_NOTEBOOK = lazy_pattern(r"([A-Za-z_]\w{0,150}) {2,80}" + re.escape(_HEADING) + r"\s*$")
"""The heading of a traceback as a notebook prints it: behind the name of the exception that ends it."""

_RICH = lazy_pattern(r"[╭┌+][─-]{1,200} " + re.escape(_HEADING) + r" [─-]{1,200}[╮┐+]")
"""The upper edge of the box in which rich prints a traceback. The line below the box names the exception."""

_EDGES = tuple("│╰└|+")
"""What the lines of such a box begin with."""

_RICH_FRAME = lazy_pattern(r"[│|] (\S[^:]{0,300}):(\d{1,9}) in (\S{1,100})")

_RAISED = lazy_pattern(r"[A-Za-z_][\w.]{0,150}(?:Error|Exception|Interrupt|Exit)(?::\s|:?$)")
"""The last line of such a traceback."""

_BAR = (
    lazy_pattern(  # the speed, with which a bar of tqdm ends; it ends no line, so a traceback follows on it
        r"(?:/s|s/\w{1,30})(?:, [^\]]{0,200})?\] ?" + re.escape(_TRACEBACK)
    )
)
_INDENTED = lazy_pattern(r"\s(?!\s{0,3}\d)")  # and not srun's number of a process
_FRAME = lazy_pattern(r'\s{1,8}File "([^"]{1,300})", line (\d{1,9})(?:, in (.{1,100}))?')
_NOTEBOOK_FRAME = lazy_pattern(
    r"(?:File ([^:]{1,300}):|((?:Cell |Input )?In ?\[\d{1,6}\]), line )(\d{1,9})(?:, in ([\w.<>]{1,100}))?"
)
_OF_A_LIBRARY = lazy_pattern(
    r"[/\\](?:site|dist)-packages[/\\]|[/\\]lib[/\\]python3|\\Python3\d*\\Lib\\|<frozen"
)
_EXCEPTION = lazy_pattern(r"[A-Za-z_][\w.]{0,150}(?:\([A-Za-z_][\w.]{0,150}\))?(?::\s|:?$)")
"""The last line of a traceback. Ray names the exception of a task in parentheses."""
_CAUGHT = lazy_pattern(
    r"\b(?:ERROR|WARN|WARNING|CRITICAL)\b(?!:\d{1,3}@)"  # but not "WARN:0@7.5", as OpenCV begins, in C++
    r"|Exception (?:ignored )?in|Logging error"
    r"|following (?:error|exception)|^\[[WE] \d{4}|^E\d{4}"  # optuna; glog, but for its warnings
)
_WITHOUT_WORDS = lazy_pattern(r"\b(?:ERROR|CRITICAL)\b(?::[\w.]{1,80})?[\s\]:|-]{0,9}$")
"""The end of what a logger says of an exception, where it says nothing: the one that is raised again, as in
lightning-hydra-template's `task_wrapper`."""

_WARNING = lazy_pattern(r"\b(?:WARN|WARNING)\b")
_LOST_PEER = lazy_pattern(r"Connection (?:reset|closed) by (?:remote )?peer|remote process exited")
"""What a rank says of another one that is gone: a consequence, of which its own death or error tells more."""

_INTENDED = ("KeyboardInterrupt", "SystemExit", "GeneratorExit")  # exceptions that are no errors


class _Traceback(msgspec.Struct):
    """A traceback that is not complete yet. ``caught`` means that a logger announced it, ``is_wrapped`` that
    its lines are cut at a width. That of a notebook is of the exception ``raised``, whose name ends it.
    """

    line: int
    caught: bool
    is_wrapped: bool = False
    raised: str = ""
    wrapped: int = 0  # lines in a row that do not begin with blanks
    open_frame: str = ""  # the beginning of a frame whose rest stands on the next line
    location: str = ""  # of the last frame of the user's code
    innermost: str = ""  # location of the last frame of any code

    def add(self, line: str) -> None:
        """Add a line, which may name a frame."""
        line = self.open_frame + line
        frame = _FRAME.match(line, 0, MAX_LINE) or _RICH_FRAME.match(line, 0, MAX_LINE)
        if self.raised and (cell := _NOTEBOOK_FRAME.match(line, 0, MAX_LINE)):
            self._stand_at(cell[1] or cell[2], cell[3], cell[4])
        is_open = (
            self.is_wrapped and not frame and line.lstrip().startswith('File "') and len(line) < MAX_LINE
        )
        self.open_frame = line if is_open else ""
        if frame:
            self._stand_at(*frame.groups())

    def _stand_at(self, file: str, line_number: str, function: str | None) -> None:
        """Go on to the place of a frame."""
        self.innermost = f"{file}:{line_number}" + (f" in {function}" if function else "")
        if not (self.location and _OF_A_LIBRARY.search(file)):
            self.location = self.innermost

    def holds(self, line: str) -> bool:
        """Return whether a line is within the traceback, and not the last one, which names the exception."""
        if self.raised:
            return not line.startswith(self.raised)
        if line[:1].isspace() or line.startswith(_EDGES):
            self.wrapped = 0
            return True
        self.wrapped += 1
        return self.is_wrapped and self.wrapped <= _MAX_WRAPPED_LINES and not _RAISED.match(line)


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
    preempted: str = ""  # the line that says that it is ended from outside, from which later errors follow
    last: list[str] = []  # the last lines, shortened
    tracebacks: dict[str, _Traceback] = {}  # by writer

    @property
    def is_quiet(self) -> bool:
        """Whether most lines would change nothing."""
        return not self.tracebacks and self.ordinary is None

    def pass_on(self, lines: Sequence[str]) -> None:
        """Count lines that change nothing."""
        self.lines += len(lines) - lines.count(ROW)
        self.keep(lines)

    def keep(self, lines: Sequence[str]) -> None:
        """Remember the last of some lines."""
        last = (line[:_MAX_LAST_CHARACTERS] for line in reversed(lines) if line and not line.isspace())
        self.last = [*self.last, *[*islice(last, _MAX_LAST_LINES)][::-1]][-_MAX_LAST_LINES:]

    def pass_frames(self, lines: Sequence[str]) -> int:
        """Count the lines that only continue the one incomplete traceback. Return their number."""
        traceback = self.tracebacks.get("") if len(self.tracebacks) == 1 else None
        if traceback is None:
            return 0
        most = min(len(lines), traceback.line + _MAX_TRACEBACK_LINES - self.lines - 1)
        count = next((i for i in range(most) if not _INDENTED.match(lines[i])), max(0, most))
        frames = [line for line in lines[:count] if not line.isspace()]
        for line in frames:
            traceback.add(line)
        if frames:
            self.announced = _is_caught(frames[-1])
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
        origin = self._origin(name)
        if origin is None:
            return
        # Keep what a terminal would show: a progress bar overwrites what precedes a carriage return.
        texts = [states(line.rstrip("\r"))[-1] for line in text.split("\n")[:-1]]
        yield from self._scan_lines(
            name, origin, texts, lambda index: Line(math.nan, texts[index]), signatures
        )

    def scan(self, name: str, lines: Sequence[Line], signatures: Sequence[Signature]) -> Iterator[Printed]:
        """Yield the news in the next lines of one file. What stands before the first row of a log that holds
        rows as well is at step 0.
        """
        origin = self._origin(name)
        if origin is None:
            return
        texts = lines.texts if isinstance(lines, Passages) else [line.text for line in lines]
        for news in self._scan_lines(name, origin, texts, lines.__getitem__, signatures):
            is_first = isinstance(lines, Passages) and news.step is None
            yield replace(news, step=0) if is_first else news

    def _scan_lines(
        self,
        name: str,
        origin: _Origin,
        texts: Sequence[str],
        line_at: Callable[[int], Line],
        signatures: Sequence[Signature],
    ) -> Iterator[Printed]:
        """Yield the news in the next lines. Only those are read that may bring any."""
        next_line = 0
        words = [signature.text for signature in signatures if signature.key not in self.remarks]
        for index in _candidate_lines(texts, (_HEADING, *PREEMPTION_WORDS, *words)):
            while next_line < index and not origin.is_quiet:
                end = min(index, next_line + _MAX_TRACEBACK_LINES)
                frame_lines = origin.pass_frames(texts[next_line:end])
                if not frame_lines:
                    line = partial(line_at, next_line)
                    yield from self._read_line(name, origin, texts[next_line], line, ())
                next_line += frame_lines or 1
            if next_line <= index:
                origin.pass_on(texts[next_line:index])
                yield from self._read_line(name, origin, texts[index], partial(line_at, index), signatures)
                next_line = index + 1
        rest = texts[next_line:]  # without text
        if ROW in rest:
            yield from _goes_on(origin, name, line_at(next_line + rest.index(ROW)))
        origin.pass_on(rest)

    def _read_line(
        self,
        name: str,
        origin: _Origin,
        whole_line: str,
        line: Callable[[], Line],
        signatures: Sequence[Signature],
    ) -> Iterator[Printed]:
        """Yield the news in one line. Its time and step are read only if they matter."""
        if whole_line == ROW:
            yield from _goes_on(origin, name, line())
            return
        origin.lines += 1
        text = whole_line[:MAX_LINE]
        if not text or text.isspace():
            return
        origin.keep([text])
        possible = [signature for signature in signatures if signature.text in text]
        error = _error(origin, text, possible, line)
        if preempts(text) or (error is not None and origin.preempted):
            if not origin.preempted:
                yield _printed(origin, name, line(), text, Severity.INFO, preempted=True)
            origin.preempted = origin.preempted or masked_text(text)
            origin.ordinary = 0
            origin.step = line().step
            return
        if error is not None:
            origin.ordinary = 0
            origin.step = line().step
            more = {"location": error.location, "catalogue": error.entries}
            yield _printed(origin, name, line(), error.text, error.severity, **more)
            return
        for signature in possible:
            is_remark = signature.severity is Severity.INFO and signature.key not in self.remarks
            if is_remark and signature.is_in(text):
                self.remarks[signature.key] = Remark(signature.entry, masked_text(text), name, origin.lines)
        if origin.ordinary is not None and not origin.tracebacks:
            origin.ordinary += 1
            yield from _goes_on(origin, name, line())

    @property
    def last_lines(self) -> str:
        """The last lines of the file with most lines; empty if nothing was printed."""
        fullest = max(self.origins.values(), key=lambda origin: origin.lines, default=_Origin())
        return "\n".join(map(masked_text, fullest.last))

    @property
    def preempted(self) -> str:
        """The line by which the run says that it is ended from outside; empty if none does."""
        return next((origin.preempted for origin in self.origins.values() if origin.preempted), "")

    def _origin(self, name: str) -> _Origin | None:
        """Return the state of a file; None if there are too many files."""
        if name not in self.origins and len(self.origins) >= _MAX_ORIGINS:
            return None
        return self.origins.setdefault(name, _Origin())


def _goes_on(origin: _Origin, name: str, line: Line) -> Iterator[Printed]:
    """Yield that a run went on after an error, if a line shows it by its step or as one of many."""
    if origin.ordinary is None or origin.tracebacks:
        return
    has_moved = line.step is not None and line.step != origin.step
    if has_moved or origin.ordinary >= _MIN_ORDINARY_LINES:
        origin.ordinary = None
        origin.preempted = ""
        yield _printed(origin, name, line, line.text[:MAX_LINE], Severity.CLEAN)


def _printed(origin: _Origin, name: str, line: Line, text: str, severity: Severity, **more: Any) -> Printed:
    time = line.time if math.isfinite(line.time) else None
    return Printed(name, origin.lines, masked_text(text), line.step, time, severity, **more)


class _Error(msgspec.Struct, frozen=True):
    """An error that one line states, or that the last line of a traceback ends."""

    text: str
    severity: Severity
    location: str
    entries: tuple[str, ...]


def _error(
    origin: _Origin, whole_line: str, signatures: Sequence[Signature], line: Callable[[], Line]
) -> _Error | None:
    """Return the error that the line completes, if any. Records a traceback that it begins or continues."""
    prefix = _WRITER.match(whole_line)
    writer, text = (prefix[0], whole_line[prefix.end() :]) if prefix else ("", whole_line)
    is_wrapped = _TRACEBACK in text and _POWERSHELL.match(text) is not None
    notebook = _NOTEBOOK.match(text)
    is_boxed = _HEADING in text and _RICH.match(text) is not None
    begins = text.startswith(_TRACEBACK) or is_wrapped or is_boxed or notebook is not None
    is_logged = _TRACEBACK in text and _LOGGED.match(text) is not None
    if begins or is_logged or (_TRACEBACK in text and _BAR.search(text)):
        if len(origin.tracebacks) < _MAX_WRITERS:
            # Between lines of two steps, lines with metrics were printed.
            caught = origin.announced and (origin.announced_by, origin.announced_at) == (writer, line().step)
            caught |= is_logged and not FAILED.search(origin.last[-2] if len(origin.last) > 1 else "")
            raised = notebook[1] if notebook else ""
            origin.tracebacks[writer] = _Traceback(origin.lines, caught, is_wrapped, raised)
        return None
    traceback = origin.tracebacks.get(writer)
    origin.announced = _is_caught(text)
    if origin.announced:
        origin.announced_by = writer
        origin.announced_at = line().step
    if traceback is not None:
        if traceback.holds(text) and origin.lines - traceback.line < _MAX_TRACEBACK_LINES:
            traceback.add(text)
            return None
        del origin.tracebacks[writer]
        if _EXCEPTION.match(text):
            if traceback.caught or text.startswith(_INTENDED):
                return None
            matches = _matches(signatures, text, f"{traceback.location}\n{traceback.innermost}")
            severity = max((match.severity for match in matches), default=Severity.CRITICAL)
            severity = Severity.INFO if _LOST_PEER.search(text) else severity
            return _Error(text, severity, traceback.location or "at its top", _signature_entries(matches))
    matches = [] if _WARNING.search(text) else _matches(signatures, text, "")
    if matches:
        return _Error(text, max(match.severity for match in matches), "", _signature_entries(matches))
    return None


def _is_caught(line: str) -> bool:
    """Return whether a line announces an exception that the training survives."""
    ends_it = FAILED.search(line, 0, MAX_LINE) or _WITHOUT_WORDS.search(line, 0, MAX_LINE)
    return _CAUGHT.search(line, 0, MAX_LINE) is not None and not ends_it


def _matches(signatures: Sequence[Signature], line: str, location: str) -> list[Signature]:
    """Return the signatures of an error that a line has; first those that say where it was raised."""
    matches = [
        signature
        for signature in signatures
        if signature.severity > Severity.INFO and signature.is_in(line, location)
    ]
    return sorted(matches, key=lambda signature: signature.raised is None)


def _signature_entries(signatures: Sequence[Signature]) -> tuple[str, ...]:
    """Return the catalogue entries of some signatures, each once."""
    return tuple(dict.fromkeys(signature.entry for signature in signatures))


def _candidate_lines(lines: Sequence[str], words: Iterable[str]) -> list[int]:
    """Return the indices of the lines that hold a word, each with the line before it, and the last line.

    This is far faster than to read each line. Lines without text count as none: the line before is the last
    one with text.
    """
    try:
        texts = pl.Series(lines, dtype=pl.String)
    except UnicodeEncodeError:  # half a letter, as JSON may escape one
        texts = pl.Series([line.encode(errors="replace").decode() for line in lines], dtype=pl.String)
    matches = [*texts.str.contains_any([*words]).arg_true(), len(lines)]
    candidates = {index for index in matches if index < len(lines)}
    for index in matches:
        before = range(index - 1, -1, -1)
        candidates.update(islice((i for i in before if lines[i] and not lines[i].isspace()), 1))
    return sorted(candidates)
