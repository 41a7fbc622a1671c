"""Reads what a training prints into files beside its log, line by line."""

import os
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

import msgspec

from sentinel.common.paths import is_directory, is_file
from sentinel.sources.base import Run
from sentinel.sources.readers.growing import Mark, read_text

ENDINGS = (".log", ".out", ".err", "log.txt")
"""Endings of the names of files with console output; detectron2 and many others write a log.txt."""

_MAX_OUTPUT_FILES = 50  # more files cannot be the console output of one run
_MAX_AT_ONCE = 1 << 20  # bytes of a file in one poll


class Output(msgspec.Struct, frozen=True):
    """The lines that were completed since a cursor, by file. ``more`` is true if a file has further lines.

    Each text ends with a line break. A line may have any length, and includes what a progress bar overwrote.
    """

    text: Mapping[str, str]
    cursor: Mapping[str, Mark]
    more: bool


class OutputFiles(msgspec.Struct, frozen=True):
    """The console output beside one run."""

    run: Run

    def poll(self, cursor: Mapping[str, Mark]) -> Output:
        """Read what was printed since ``cursor`` (``{}`` for the start).

        A file that cannot be read gives no lines. A file that shrank or was replaced is read from its start.
        """
        texts: dict[str, str] = {}
        marks = dict(cursor)
        more = False
        for path in self.paths():
            with suppress(OSError):
                if (piece := _read_output(path, marks.get(path.name, {}))) is not None:
                    texts[path.name], marks[path.name], goes_on = piece
                    more = more or goes_on
        return Output(texts, marks, more)

    def paths(self) -> list[Path]:
        """Return the files; none if there are too many to be those of one run."""
        if self.run.local is None:
            return []
        directory = self.run.local if is_directory(self.run.local) else self.run.local.parent
        with suppress(OSError):
            names = self._names(directory, self.run.local)
            return [directory / name for name in names] if len(names) <= _MAX_OUTPUT_FILES else []
        return []

    def _names(self, directory: Path, run_directory: Path) -> list[str]:
        with os.scandir(directory) as entries:
            names = sorted(entry.name for entry in entries)
        outputs = [name for name in names if name.endswith(ENDINGS)]
        if directory != run_directory:  # a log file, which shares its directory with other things, or runs
            outputs = [name for name in outputs if name != run_directory.name]
            if sum(name.endswith(run_directory.suffix) for name in names) > 1:
                outputs = [name for name in outputs if Path(name).stem == run_directory.stem]
        return [name for name in outputs if is_file(directory / name)]


def _read_output(path: Path, mark: Mark) -> tuple[str, Mark, bool] | None:
    """Return complete lines, the next mark, and whether more follow; None if nothing is new."""
    piece = read_text(path, mark, _MAX_AT_ONCE)
    if piece is None:
        return None
    consumed = piece.data.rfind(b"\n") + 1
    if not consumed and len(piece.data) == _MAX_AT_ONCE:
        consumed = len(piece.data)
    text = piece.data[: piece.data.rfind(b"\n") + 1].decode(errors="replace")
    return text, piece.mark(consumed, waiting=not piece.more), piece.more
