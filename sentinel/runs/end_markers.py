"""What a run said last: a file that says it is done, its last row, and the last lines that it printed.

A log that states its end in a record of its own needs none of this. For a plain loop, a person or a script
can state the end: by an empty file `.done` in the directory of the run, by one that is called like the log
with `.done` behind it, or by a last row with `done: true`. What a program prints when it ends is known from
the print statements of the frameworks.
"""

import csv
import json
import zlib
from collections.abc import Iterator
from contextlib import suppress
from functools import partial
from pathlib import Path

from sentinel.common.text import clean_text
from sentinel.runs.exit_messages import ending_in
from sentinel.runs.state import last_write
from sentinel.sources.base import Ending, EndKind, Run
from sentinel.sources.readers.files import open_log
from sentinel.sources.registry import format_named
from sentinel.sources.sidecars.output_files import OutputFiles

DONE = ".done"

_TAIL = 1 << 18  # bytes of a file that are read
_LONGEST = 500  # characters of a line
_LATE_SECONDS = 60.0  # a log may be flushed after its last word
_TRUE = ("1", "1.0", "true")
_OF_WANDB = Path("files", "output.log")  # in the directory of a run


def last_words(run: Run, attempts: int = 1) -> Ending | None:
    """Return how the run ended by its last words; None if they do not say. It began ``attempts`` times.

    Files are only read, and one that cannot be read says nothing.
    """
    path = run.local
    if path is None:
        return None
    if (marked := _marked(path)) is not None:
        return Ending(EndKind.FINISHED, f"{clean_text(marked.name, 80)} lies beside its log", inferred=True)
    if format_named(run.format).is_appended_text and _says_done(path):
        return Ending(EndKind.FINISHED, "its last row has `done: true`", inferred=True)
    for file in _texts(run, path):
        with suppress(OSError):
            ends = said_in(file, attempts) if _is_as_late(file, path) else None
            if ends is not None:
                return ends
    return None


def said_in(file: Path, attempts: int = 1) -> Ending | None:
    """Return how a run ended by the last lines that it printed into a file. Raises OSError."""
    return ending_in([*_shown(_tail(file))], attempts, partial(_head, file))


def heard_from(run: Run) -> int:
    """Return a sum over the sizes and times of the files that may hold last words: while it stays, so do
    they.
    """
    files = []
    if (path := run.local) is not None:
        own = [path] if format_named(run.format).is_appended_text else []
        for file in (*_marks(path), *own, *_texts(run, path)):
            with suppress(OSError):
                status = file.stat()
                files.append((str(file), status.st_size, status.st_mtime_ns))
    return zlib.crc32(repr(files).encode(errors="replace")) + 1


def _texts(run: Run, path: Path) -> list[Path]:
    """Return the files with what the run printed."""
    return [
        *([path] if format_named(run.format).is_console else []),
        *OutputFiles(run).paths(),
        path / _OF_WANDB,
    ]


def done_file(run: Run) -> Path | None:
    """Return the file that says that the run is done, if somebody makes it; None if no place is its own."""
    path = run.local
    if path is None or not path.exists():
        return None
    return path / DONE if path.is_dir() else path.with_name(f"{path.name}{DONE}")


def _marked(path: Path) -> Path | None:
    """Return the file that says that the run is done; one that is older than its log is of an earlier
    attempt.
    """
    for mark in _marks(path):
        with suppress(OSError):
            logs = [file for file in path.iterdir() if file != mark] if path.is_dir() else [path]
            if mark.lstat().st_mtime >= max(map(last_write, logs), default=0.0) - _LATE_SECONDS:
                return mark
    return None


def _marks(path: Path) -> list[Path]:
    """Return the files that say, once somebody makes them, that the run is done."""
    if path.is_dir():
        return [path / DONE]
    marks = [path.with_name(f"{path.name}{DONE}")]
    with suppress(OSError):
        if sum(file.suffix == path.suffix for file in path.parent.iterdir()) == 1:
            marks.append(path.with_name(DONE))
    return marks


def _says_done(path: Path) -> bool:
    """Return whether the last row has `done: true`, and no row before it."""
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
            statements = [json.loads(line) for line in lines[-2:]]
            told = [str(row.get("done")).casefold() in _TRUE for row in statements if isinstance(row, dict)]
        return told[-1:] == [True] and told[:-1] != [True]
    return False


def _head(path: Path) -> Iterator[str]:
    """Return the lines at the beginning of a file."""
    with open_log(path) as file:
        return _shown(file.read(_TAIL).decode(errors="replace"))


def _tail(path: Path) -> str:
    """Return the end of a file."""
    with open_log(path) as file:
        size = file.seek(0, 2)
        file.seek(max(0, size - _TAIL))
        return str(file.read(_TAIL).decode(errors="replace"))


def _shown(text: str) -> Iterator[str]:
    """Yield the lines that a terminal would show, without those that hold nothing."""
    for line in text.split("\n"):
        last = line.rstrip("\r").rpartition("\r")[2][:_LONGEST]
        if last and not last.isspace():
            yield last


def _is_as_late(file: Path, log: Path) -> bool:
    """Return whether a file was written to as late as the log; else its last words are not those of the
    run.
    """
    return file == log or file.stat().st_mtime >= last_write(log) - _LATE_SECONDS
