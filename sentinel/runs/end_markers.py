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

from sentinel.common.paths import exists, is_directory
from sentinel.common.text import clean_text
from sentinel.runs.state import last_write
from sentinel.sources.base import Ending, EndKind, Run
from sentinel.sources.readers.files import open_log
from sentinel.sources.registry import format_named
from sentinel.sources.sidecars.output_files import OutputFiles

DONE = ".done"
"""The name of the file that says that a run is done, and the ending of its name beside a log."""

_MAX_MARKER_BYTES = 1 << 18  # of the beginning or the end of a file that are read
_MAX_LINE_CHARACTERS = 500
_MAX_LATE_SECONDS = 60.0  # a log may be flushed so long after its last word
_TRUE = ("1", "1.0", "true")  # values of `done`
_WANDB_OUTPUT = Path("files", "output.log")  # in the directory of a run


def last_words(run: Run, attempts: int = 1) -> Ending | None:
    """Return how the run ended by its last words; None if they do not say. It began ``attempts`` times.

    Files are only read, and one that cannot be read says nothing.
    """
    path = run.local
    if path is None:
        return None
    marker = _marker(path)
    if marker is not None:
        return Ending(EndKind.FINISHED, f"{clean_text(marker.name, 80)} lies beside its log", inferred=True)
    if format_named(run.format).is_appended_text and _says_done(path):
        return Ending(EndKind.FINISHED, "its last row has `done: true`", inferred=True)
    for file in _texts(run, path):
        with suppress(OSError):
            # Words that are older than the log are not the last ones of the run.
            is_as_late = file == path or file.stat().st_mtime >= last_write(path) - _MAX_LATE_SECONDS
            ending = ending_in_file(file, attempts) if is_as_late else None
            if ending is not None:
                return ending
    return None


def ending_in_file(file: Path, attempts: int = 1) -> Ending | None:
    """Return how a run ended by the last lines that it printed into a file. Raises OSError."""
    from sentinel.runs.exit_messages import ending_in  # slow to import

    return ending_in([*_visible_lines(_tail(file))], attempts, partial(_head, file))


def checksum(run: Run) -> int:
    """Return a checksum of the sizes and times of the files that may hold last words.

    The last words change only if it changes. It is never 0.
    """
    files = []
    path = run.local
    if path is not None:
        logs = [path] if format_named(run.format).is_appended_text else []
        for file in (*_possible_markers(path), *logs, *_texts(run, path)):
            with suppress(OSError):
                status = file.stat()
                files.append((str(file), status.st_size, status.st_mtime_ns))
    return zlib.crc32(repr(files).encode(errors="replace")) + 1


def _texts(run: Run, path: Path) -> list[Path]:
    """Return the files with what the run printed."""
    return [
        *([path] if format_named(run.format).is_console else []),
        *OutputFiles(run).paths(),
        path / _WANDB_OUTPUT,
    ]


def done_file(run: Run) -> Path | None:
    """Return the file that would say that the run is done; None if the run has no file on this machine."""
    path = run.local
    if path is None or not exists(path):
        return None
    return path / DONE if is_directory(path) else path.with_name(f"{path.name}{DONE}")


def _marker(path: Path) -> Path | None:
    """Return the file that says that the run is done. One older than its log is of an earlier attempt."""
    for marker in _possible_markers(path):
        with suppress(OSError):
            logs = [file for file in path.iterdir() if file != marker] if is_directory(path) else [path]
            if marker.lstat().st_mtime >= max(map(last_write, logs), default=0.0) - _MAX_LATE_SECONDS:
                return marker
    return None


def _possible_markers(path: Path) -> list[Path]:
    """Return the files that say, if they exist, that the run is done."""
    if is_directory(path):
        return [path / DONE]
    markers = [path.with_name(f"{path.name}{DONE}")]
    with suppress(OSError):
        if sum(file.suffix == path.suffix for file in path.parent.iterdir()) == 1:
            markers.append(path.with_name(DONE))
    return markers


def _says_done(path: Path) -> bool:
    """Return whether the last row has `done: true`, and no row before it."""
    with suppress(OSError, ValueError, csv.Error):
        lines = [line for line in _tail(path).splitlines() if line.strip()]
        if path.suffix in (".csv", ".tsv"):
            with open_log(path) as file:
                head = file.readline(_MAX_MARKER_BYTES).decode(errors="replace")
            delimiter = max(",;\t", key=head.count)
            names, *rows = csv.reader([head, *lines[-2:]], delimiter=delimiter)
            column = [name.strip().casefold() for name in names].index("done")
            is_done = [row[column].strip().casefold() in _TRUE for row in rows if len(row) > column]
        else:
            objects = [json.loads(line) for line in lines[-2:]]
            is_done = [str(row.get("done")).casefold() in _TRUE for row in objects if isinstance(row, dict)]
        return is_done[-1:] == [True] and is_done[:-1] != [True]
    return False


def _head(path: Path) -> Iterator[str]:
    """Return the visible lines at the beginning of a file."""
    with open_log(path) as file:
        return _visible_lines(file.read(_MAX_MARKER_BYTES).decode(errors="replace"))


def _tail(path: Path) -> str:
    """Return the end of a file."""
    with open_log(path) as file:
        size = file.seek(0, 2)
        file.seek(max(0, size - _MAX_MARKER_BYTES))
        return str(file.read(_MAX_MARKER_BYTES).decode(errors="replace"))


def _visible_lines(text: str) -> Iterator[str]:
    """Yield the lines that a terminal would show, without those that hold nothing."""
    for line in text.split("\n"):
        last = line.rstrip("\r").rpartition("\r")[2][:_MAX_LINE_CHARACTERS]
        if last and not last.isspace():
            yield last
