"""Files with the text that a training printed. The metric lines of a file are the points of one run.

A file counts only if some of its lines are surely metrics, or if no file of its directory has metrics and it
shows how a training crashed before the first one. Another log of the directory that holds the same comes
first. What a progress bar overwrote, which is everything before a carriage return, is no line. Several
processes may print into one file. If each line begins with the name of a process, each process is a stream of
its own.

The last line counts only when its line break is there, because "loss: 2.1" may yet become "loss: 2.15".
A whole dictionary counts at once, and so does the count of a bar that is being drawn. When the log is over,
the last line counts as it is.
"""

import os
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from sentinel.common.lazy_pattern import lazy_pattern
from sentinel.sources.base import Chunk, Cursor, PollResult, Run, Source
from sentinel.sources.console.passages import MAX_LINE
from sentinel.sources.console.shapes import OF_ANY_PROGRAM
from sentinel.sources.readers.files import open_log
from sentinel.sources.readers.growing import Mark, Read, nothing_new, read_lines, read_rest, unreadable
from sentinel.sources.readers.redrawn_lines import end_of_lines
from sentinel.sources.readers.sniffing import is_of_tracker, remembered
from sentinel.sources.readers.two_readers import TwoReaders
from sentinel.sources.readers.words import says_metric
from sentinel.sources.registry import formats

if TYPE_CHECKING:
    from sentinel.sources.console.line_forms import LineForm
    from sentinel.sources.console.text import Text

FORMAT = "console"
is_console = True

_MIN_READ = 1 << 16
_MAX_READ = 1 << 22
_BYTES_A_POINT = 32  # a guess of how far to read for some points; a wrong one only costs time
_SNIFFED = 1 << 16  # bytes at the beginning and at the end of a file
_FEW = 10  # points that are read at once until a file is known to hold metrics
_MAX_TEXTS = 20  # in a directory with logs; more are data

_CONSOLE_NAME = lazy_pattern(
    r".*\.(?:log|out|err|stdout|stderr)|.*(?:log|out|output|console|err|stdout|stderr)[\w.-]*\.txt",
    re.IGNORECASE,
)
_KNOWN_FORMS = frozenset(
    {
        "bar", "block", "boosting", "build-nanogpt", "char-rnn", "columns", "composer", "darknet",
        "deepspeed", "deepspeed overflow", "deepspeed speed", "dictionary",
        "epoch and iteration of a part", "espnet", "espnet validation", "estimator",
        "fairseq validation", "iteration of a part", "keras", "llm.c", "marian", "marian validation",
        "megatron", "megatron validation", "result", "table", "td3", "torchtune", "wenet", "xlm",
    }
)  # fmt: skip
"""Forms of consoles that have a reader of their own. All others are read as lines that recur."""

_LINE_OF_DEEPSPEED = lazy_pattern(rb"^\[[\d :,-]{19,26}\] \[[A-Z]+\] \[\w{1,80}\.py:.*", re.MULTILINE)

_REQUIREMENTS = "requirements.txt"  # beside each run of W&B

_TRACEBACK = lazy_pattern(
    rb"Traceback \(most recent call last\):\r?\n(?:[ \t].*\n)+[\w.]+(?:Error|Exception|Interrupt)\b"
    rb"|  File \"[^\"\n]*\", line \d{1,9}\r?\n(?:[ \t].*\n){0,3}(?:Syntax|Indentation|Tab)Error: "
)
"""How an exception is printed; one of a program that Python cannot even read has no heading."""

_OF_A_TRAINING = lazy_pattern(
    rb'File "[^"\n]*(?:train|fine_?tun|/(?:torch|tensorflow|keras|jax|lightning|transformers)/)'
)


def find(directory: Path, names: Sequence[str]) -> Iterator[Run]:
    """Yield the console logs of a directory whose metrics stand in no other log there."""
    trainer_names = [name for name in names if name != _REQUIREMENTS and not is_of_tracker(name, names)]
    texts = [name for name in trainer_names if name.endswith(".txt")]
    usual = [name for name in trainer_names if _CONSOLE_NAME.fullmatch(name)]
    candidate_names = dict.fromkeys([*usual, *texts] if len(texts) <= _MAX_TEXTS else usual)
    paths = [directory / name for name in candidate_names]
    logs = [path for path in paths if _proof(path)]
    if not logs and not any(each.has_text_of(directory) for each in formats().values()):
        logs = [path for path in paths if _tells_crash(path)]
    if logs and not _is_told_elsewhere(directory, names):
        yield from map(_console_run, logs)


def run_in(path: Path) -> Run | None:
    """Return the run in a console file, if it holds metrics or a training's crash and no other format."""
    others = (each.run_in(path) for name, each in formats().items() if name != FORMAT)
    if not (_proof(path) or _tells_crash(path)) or any(others):
        return None
    return _console_run(path)


def _console_run(path: Path) -> Run:
    proof = _proof(path)
    is_general = proof not in _KNOWN_FORMS or (proof in OF_ANY_PROGRAM and _has_metrics_of_its_own(path))
    return Run(path, FORMAT, Console(path, is_general), has_parallel_streams=True)


@dataclass(frozen=True)
class Console(TwoReaders):
    """One file of printed lines. The general reader begins if its first lines have no form with a reader of
    its own. ``forms`` are the forms of lines that a person named.
    """

    forms: "tuple[LineForm, ...]" = ()

    def reader(self, is_general: bool) -> Source:
        """Return the reader of lines that recur, or that of known forms."""
        if not is_general:
            return ConsoleLog(self.path)
        from sentinel.sources.general.text_log import TextLog  # slow to import, and few logs are texts

        return TextLog(self.path, forms=self.forms)


class ConsoleLog(msgspec.Struct, frozen=True):
    """One file of printed lines."""

    path: Path

    def poll(self, cursor: Cursor, limit: int) -> PollResult:
        """Return what was printed since ``cursor``; see `sentinel.sources.base.Source`."""
        try:
            piece = _read_console(self.path, cursor.get("mark", {}), limit)
        except OSError as error:
            return unreadable(self.path, cursor, error)
        if piece is None:
            return nothing_new(cursor)
        text = _console_text(self.path, cursor, piece.restarted)
        consumed = text.parse(piece.data, piece.offset, limit)
        more = consumed > 0 and (piece.more or text.count >= limit)
        cursor = text.memory(piece.mark(consumed, waiting=not more))
        return PollResult(cursor, text.chunks(), text.read_issues, more, config=text.config, lines=text.lines)

    def flush(self, cursor: Cursor) -> Sequence[Chunk]:
        """Return the points of a last line without a line break, and of lines that wait; see `Flushable`."""
        try:
            piece = read_rest(self.path, cursor.get("mark", {}), MAX_LINE)
        except OSError:
            return ()
        text = _console_text(self.path, cursor, False)
        text.end(piece.data if piece else b"")
        return text.chunks()


def _console_text(path: Path, cursor: Cursor, restarted: bool) -> "Text":
    from sentinel.sources.console.text import Text  # slow to import, and few logs are texts

    return Text(path, cursor, restarted)


def _read_console(path: Path, mark: Mark, limit: int) -> Read | None:
    """Read about ``limit`` new points, but at least one line, unless that is overlong."""
    return read_lines(path, mark, min(_MAX_READ, max(_MIN_READ, limit * _BYTES_A_POINT)), MAX_LINE)


@remembered
def _proof(path: Path) -> str:
    """Return whether two metric lines of one shape stand near the beginning or near the end of the file.

    Metric lines without a step must stand near the beginning, because they count only there.
    """
    try:
        with open_log(path) as file:
            proof = _is_plain(path, file.read(_SNIFFED), with_rows=True)
            if _is_enough(proof):
                return proof
            size = file.seek(0, os.SEEK_END)
            file.seek(max(_SNIFFED, size - _SNIFFED))
            proof_at_end = _is_plain(path, file.read(_SNIFFED), with_rows=False)
            return proof_at_end if _is_enough(proof_at_end) else proof or proof_at_end
    except OSError:
        return ""


@remembered
def _has_metrics_of_its_own(path: Path) -> bool:
    """Return whether lines that recur name metrics, without those that DeepSpeed prints."""
    from sentinel.sources.recurring.lines import RecurringLines  # slow to import

    try:
        with open_log(path) as file:
            head = _LINE_OF_DEEPSPEED.sub(b"", file.read(_SNIFFED))
    except OSError:
        return False
    rows = RecurringLines().read(head[: end_of_lines(head)])
    return any(says_metric(name) for row in rows for name in row.names)


def _is_enough(proof: str) -> bool:
    """Return whether a form tells what reads the metrics of a console."""
    return bool(proof) and proof not in OF_ANY_PROGRAM


@remembered
def _tells_crash(path: Path) -> bool:
    """Return whether a training ended with an exception before it told a metric."""
    try:
        with open_log(path) as file:
            file.seek(max(0, file.seek(0, os.SEEK_END) - _SNIFFED))
            traceback = _TRACEBACK.search(file.read(_SNIFFED))
    except OSError:
        return False
    return traceback is not None and _OF_A_TRAINING.search(traceback[0]) is not None


def _is_plain(path: Path, piece: bytes, with_rows: bool) -> str:
    text = _console_text(path, {}, False)
    start = 0
    while consumed := text.parse(piece[start:], 0, text.count + _FEW):
        if _is_enough(text.proof) or (with_rows and text.has_rows):
            return text.proof or "rows"
        start += consumed
    return text.proof


def _is_told_elsewhere(directory: Path, names: Sequence[str]) -> bool:
    """Return whether another format finds a run beside the text."""
    others = (each for name, each in formats().items() if name != FORMAT)
    return any(next(iter(each.find(directory, names)), None) is not None for each in others)
