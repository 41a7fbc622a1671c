"""What a run said last: a file that says it is done, its last row, and the last lines that it printed.

A log that states its end in a record of its own needs none of this. For a plain loop, a person or a script
can say it: an empty file `.done` in the directory of the run, or one that has the name of the log with
`.done` behind it; or a last row with `done: true`. What a program prints when it comes to its end is known
from the frameworks' own print statements.
"""

import csv
import json
import re
import signal
import zlib
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path

from sentinel.ground.text import clean_text
from sentinel.runs.state import last_write
from sentinel.sources.base import Ending, EndKind, Run
from sentinel.sources.beside.output_files import OutputFiles
from sentinel.sources.reading.files import open_log

ENDS_FROM_OUTSIDE = frozenset({signal.SIGHUP, signal.SIGINT, signal.SIGTERM})
"""Signals by which a person or a scheduler ends a process."""

_PREEMPTED = re.compile(
    r"\*\*\* (?:JOB|STEP) \S+ ON \S+ CANCELLED AT \S+"  # slurmstepd: a time limit, a preemption, scancel
    r"|Received (?:15|SIGTERM) death signal, shutting down workers"  # torch's elastic agent
    r"|SignalException: Process \d+ got signal: (?:1|2|15)\b"  # its processes
    r"|Received SIGTERM: 15\b|\bSIGTERMException\b"  # Lightning's signal_connector.py
    r"|(?:^|\]:? ?)KeyboardInterrupt$"  # CPython; a launcher may put the rank before it
    r"|Handling auto-requeue signal: \d+"  # the same
)

PREEMPTION_WORDS = ("CANCELLED AT", "signal", "SIGTERM", "KeyboardInterrupt")
"""Every such line holds one of them."""


def preempts(line: str) -> bool:
    """Whether a line says that the run is ended from outside."""
    return _PREEMPTED.search(line) is not None


DONE = ".done"

_TAIL = 1 << 18  # bytes of a file that are read
_LAST_LINES = 50  # launchers and loggers print fewer after a run's own last word
_LONGEST = 500  # characters of a line
_LATE_SECONDS = 60.0  # a log may be flushed after its last word
_TRUE = ("1", "1.0", "true")
_OF_WANDB = Path("files", "output.log")  # in the directory of a run
_PRINTED = ("console",)  # formats whose log is what was printed
_WRITTEN = ("jsonl", "csv")

_BANNER = re.compile(
    r"\bend of (?:the )?training\b"
    r"|\btrain(?:ing)?(?: run| job| process)?(?: is| has| was)? ?(?:been )?"
    r"(?:completed?|finished|done|ended|successful|over)\b"
    r"(?!\s*[:=]?\s*\d*\s*(?:%|/|of\b|steps?\b|batch))"
    r"|\b(?:finished|completed|done)(?: with)?(?: the)? training\b"
    r"|\btraining (?:time|took)\b\W*(?:[\w.]+ )?\d|\btime consumed\b"
    r"|\b(?:experiment|job|run|script|program)(?: is| has)? (?:finished|completed?|ended|done)\b"
    r"|\bjob end at\b"
    r"|`?Trainer\.\w+`? stopped: `?max_\w+"  # Lightning
    r"|\b\d+ epochs completed in\b|\bOptimizer stripped from\b"  # Ultralytics
    r"|\bwandb: (?:Run history|Run summary|Synced)\b"
    r"|\bsav(?:ed|ing)\b.{0,80}\bfinal\b"
    r"|\bfinal (?:model|checkpoint|weights|policy)\b.{0,80}\b(?:saved|written)\b"
    r"|^\W*(?:all )?(?:done|finished|completed?|success(?:ful(?:ly)?)?)\W*$",
    re.IGNORECASE,
)
_OF_A_PART = re.compile(
    r"\bepochs?\W{0,3}\d+\b|\b(?:val|valid|validation|eval|evaluation|test|warm-?up|fold|round|stage|phase|iteration|step|batch)\b",
    re.IGNORECASE,
)
"""Words of a line that speaks of an end of less than the run."""

_EARLY = re.compile(
    r"^(?:epoch \d+: |\[?info\]?:? |info:\w+: ?)*early stopp(?:ing|ed)\b"
    r"(?!.*\b(?:counter|patience of|enabled)\b)",
    re.IGNORECASE,
)
_EPOCH = re.compile(
    r"\bepochs?\b\s{0,4}[:#=]?\s{0,4}[\[(]?\s{0,4}(\d{1,6})\s{0,2}(?:/|of)\s{0,2}(\d{1,6})", re.IGNORECASE
)
_COUNT = re.compile(r"(?<![\w./])(\d{1,9})\s?/\s?(\d{1,9})(?![\w./])")
_BAR = re.compile(r"100%\s?\|[^|]{0,200}\|\s?(\d{1,9})/(\d{1,9}) \[")
_VALUE = re.compile(r"[a-z]\w*\s{0,2}[:=]\s{0,2}[-+]?\d", re.IGNORECASE)
_DIGITS = re.compile(r"\d+")


def last_words(run: Run, attempts: int = 1) -> Ending | None:
    """How the run ended by its last words; None if they do not say. It began ``attempts`` times.

    Files are only read, and one that cannot be read says nothing.
    """
    path = run.local
    if path is None:
        return None
    if (marked := _marked(path)) is not None:
        return Ending(EndKind.FINISHED, f"{clean_text(marked.name, 80)} lies beside its log", inferred=True)
    if run.format in _WRITTEN and _says_done(path):
        return Ending(EndKind.FINISHED, "its last row has `done: true`", inferred=True)
    for file in _texts(run, path):
        with suppress(OSError):
            lines = [*_shown(_tail(file))]
            if lines and _is_as_late(file, path) and (ending := _printed(lines, attempts)) is not None:
                return ending
    return None


def heard_from(run: Run) -> int:
    """A sum over the sizes and times of the files that may hold last words: while it stays, so do they."""
    found = []
    if (path := run.local) is not None:
        own = [path] if run.format in _WRITTEN else []
        for file in (*_marks(path), *own, *_texts(run, path)):
            with suppress(OSError):
                status = file.stat()
                found.append((str(file), status.st_size, status.st_mtime_ns))
    return zlib.crc32(repr(found).encode(errors="replace")) + 1


def _texts(run: Run, path: Path) -> list[Path]:
    """The files with what the run printed."""
    return [*([path] if run.format in _PRINTED else []), *OutputFiles(run).paths(), path / _OF_WANDB]


def done_file(run: Run) -> Path | None:
    """The file that says that the run is done, if somebody makes it; None if no place is its own."""
    path = run.local
    if path is None or not path.exists():
        return None
    return path / DONE if path.is_dir() else path.with_name(f"{path.name}{DONE}")


def _marked(path: Path) -> Path | None:
    """The file that says that the run is done; one that is older than its log is of an earlier attempt."""
    for mark in _marks(path):
        with suppress(OSError):
            logs = [one for one in path.iterdir() if one != mark] if path.is_dir() else [path]
            if mark.lstat().st_mtime >= max(map(last_write, logs), default=0.0) - _LATE_SECONDS:
                return mark
    return None


def _marks(path: Path) -> list[Path]:
    """The files that say, once somebody makes them, that the run is done."""
    if path.is_dir():
        return [path / DONE]
    marks = [path.with_name(f"{path.name}{DONE}")]
    with suppress(OSError):
        if sum(one.suffix == path.suffix for one in path.parent.iterdir()) == 1:
            marks.append(path.with_name(DONE))
    return marks


def _says_done(path: Path) -> bool:
    """Whether the last row has `done: true`, and no row before it."""
    with suppress(OSError, ValueError, csv.Error):
        lines = [line for line in _tail(path).splitlines() if line.strip()]
        if path.suffix in (".csv", ".tsv"):
            with open_log(path) as file:
                head = file.readline(_TAIL).decode(errors="replace")
            delimiter = max(",;\t", key=head.count)
            names, *rows = csv.reader([head, *lines[-2:]], delimiter=delimiter)
            place = [name.strip().casefold() for name in names].index("done")
            told = [row[place].strip().casefold() in _TRUE for row in rows if len(row) > place]
        else:
            found = [json.loads(line) for line in lines[-2:]]
            told = [str(row.get("done")).casefold() in _TRUE for row in found if isinstance(row, dict)]
        return told[-1:] == [True] and told[:-1] != [True]
    return False


def _tail(path: Path) -> str:
    """The end of a file."""
    with open_log(path) as file:
        size = file.seek(0, 2)
        file.seek(max(0, size - _TAIL))
        return str(file.read(_TAIL).decode(errors="replace"))


def _shown(text: str) -> Iterator[str]:
    """The lines that a terminal would show, without those that hold nothing."""
    for line in text.split("\n"):
        last = line.rstrip("\r").rpartition("\r")[2][:_LONGEST]
        if last and not last.isspace():
            yield last


def _is_as_late(file: Path, log: Path) -> bool:
    """Whether a file was written to as late as the log; else its last words are not those of the run."""
    return file == log or file.stat().st_mtime >= last_write(log) - _LATE_SECONDS


def _printed(lines: Sequence[str], attempts: int) -> Ending | None:
    last = lines[-_LAST_LINES:]
    for line in reversed(last):
        if preempts(line):
            return _ending(EndKind.PREEMPTED, line)
        ends = _EARLY.search(line) or (_BANNER.search(line) and not _OF_A_PART.search(line))
        if ends and _is_rare(line, lines, attempts):
            return _ending(EndKind.FINISHED, line)
    for line in reversed(last):
        if (told := _counts_to_its_end(line, lines, attempts)) is not None:
            return _ending(EndKind.FINISHED, line) if told else None
    return None


def _ending(outcome: EndKind, line: str) -> Ending:
    return Ending(outcome, f"it printed {clean_text(line.strip(), 120)!r}", inferred=True)


def _is_rare(line: str, lines: Sequence[str], attempts: int) -> bool:
    """Whether a line was printed no more often than the run ended; one that each epoch prints is no end."""
    shape = _DIGITS.sub("0", line.strip())
    return sum(_DIGITS.sub("0", one.strip()) == shape for one in lines) <= attempts


def _counts_to_its_end(line: str, lines: Sequence[str], attempts: int) -> bool | None:
    """Whether the line counts to an end, as `epoch: 20/20` does; None if it counts nothing.

    A line that announces an epoch says nothing of its end, so an epoch counts only beside a value.
    """
    if not (counts := _COUNT.findall(line)):
        return None
    if any(int(done) != int(of) for done, of in counts):
        return False
    if epoch := _EPOCH.search(line):
        same = sum(
            bool((one := _EPOCH.search(other)) and one[0] == epoch[0] and _VALUE.search(other))
            for other in lines
        )
        return _VALUE.search(line[epoch.end() :]) is not None and same <= attempts
    if bar := _BAR.search(line):
        whole = sum(bool((one := _BAR.search(other)) and one[1] == bar[1]) for other in lines)
        return whole <= attempts and not any(map(_goes_through_epochs, lines))
    return False


def _goes_through_epochs(line: str) -> bool:
    return "epoch" in line.casefold()
