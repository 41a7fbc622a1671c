"""What a training printed into files beside its log, line by line as it comes."""

import os
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from sentinel.sources.base import Line, Run
from sentinel.sources.console_lines import seconds
from sentinel.sources.files import open_log
from sentinel.sources.growing import Mark, read_new

LONGEST_LINE = 500  # characters; the rest is cut off

_ENDINGS = (".log", ".out", ".err")
_MOST_FILES = 50  # more are no console output of one run
_OLD_BYTES = 256 << 10  # of what was printed before sentinel looked for the first time
_MOST_AT_ONCE = 1 << 20


@dataclass
class OutputFiles:
    """The console output beside one run. What is read is for the moment, so no cursor is kept."""

    run: Run
    _marks: dict[str, Mark] = field(default_factory=dict)

    def new_lines(self) -> Iterator[Line]:
        """The lines that were completed since the last call. A file that cannot be read has none."""
        if self.run.local is None:
            return
        directory = self.run.local if self.run.local.is_dir() else self.run.local.parent
        with suppress(OSError):
            names = self._names(directory, self.run.local)
            for name in names if len(names) <= _MOST_FILES else ():
                with suppress(OSError):
                    yield from self._lines(directory / name, name)

    def _names(self, directory: Path, own: Path) -> list[str]:
        with os.scandir(directory) as entries:
            names = sorted(entry.name for entry in entries)
        found = [name for name in names if name.endswith(_ENDINGS)]
        if directory != own:  # a log file, which shares its directory with other things, or runs
            found = [name for name in found if name != own.name]
            if sum(name.endswith(own.suffix) for name in names) > 1:
                found = [name for name in found if Path(name).stem == own.stem]
        return [name for name in found if (directory / name).is_file()]

    def _lines(self, path: Path, name: str) -> Iterator[Line]:
        if name not in self._marks:
            self._marks[name] = _near_the_end(path)
        while (read := read_new(path, self._marks[name], _MOST_AT_ONCE)) is not None:
            consumed = read.data.rfind(b"\n") + 1
            if not consumed and len(read.data) == _MOST_AT_ONCE:
                consumed = len(read.data)
            self._marks[name] = read.mark(consumed, waiting=not read.more)
            for line in read.data[:consumed].decode(errors="replace").split("\n"):
                text = line.rstrip("\r").rpartition("\r")[2]  # what a progress bar overwrote is gone
                if text and not text.isspace():
                    yield Line(seconds(text), text[:LONGEST_LINE])
            if not read.more:
                return


def _near_the_end(path: Path) -> dict[str, Any]:
    """A mark near the end of a file, at the beginning of a line; the file's start if it is short."""
    status = path.stat()
    offset = max(0, status.st_size - _OLD_BYTES)
    if offset:
        with open_log(path) as file:
            file.seek(offset)
            offset += file.read(_OLD_BYTES).find(b"\n") + 1
    return {"inode": status.st_ino, "offset": offset, "size": offset, "head": ""} if offset else {}
