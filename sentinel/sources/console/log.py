"""Files with the text that a training printed. The metric lines of a file are the points of one run.

A file counts only if some of its lines are surely metrics, and if no other log of its directory holds the
same. What a progress bar overwrote, which is everything before a carriage return, is no line. Several
processes may print into one file. If each line begins with the name of a process, each process is a stream of
its own.

The last line counts only when its line break is there, because "loss: 2.1" may yet become "loss: 2.15".
"""

import os
import re
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sentinel.sources.base import Batch, Chunk, Complaint, Cursor, Line, Run
from sentinel.sources.console.bars import BAR, counts_steps
from sentinel.sources.console.lines import counts_metrics, planned, seconds
from sentinel.sources.console.shapes import WORDS
from sentinel.sources.console.writer import Writer
from sentinel.sources.reading.files import open_log
from sentinel.sources.reading.growing import Mark, Read, nothing_new, read_lines, unreadable
from sentinel.sources.reading.sniffing import remembered
from sentinel.sources.registry import formats

FORMAT = "console"

LONGEST_LINE = 1 << 20
"""Bytes. A longer line is skipped. This bounds the memory of a poll."""

_LEAST_READ = 1 << 16
_BYTES_A_POINT = 32  # a guess of how far to read for some points; a wrong one only costs time
_SNIFFED = 1 << 16  # bytes at the beginning and at the end of a file
_LONGEST_TEXT = 2000  # characters of a line that are passed on
_MOST_WRITERS = 16  # processes; what further ones print is ignored

_NAME = re.compile(
    r".*\.(?:log|out|err|stdout|stderr)|.*(?:log|out|output|console|err|stdout|stderr)[\w.-]*\.txt",
    re.IGNORECASE,
)
_WRITER = re.compile(
    r"\[(?:rank|default)\d{1,5}\]:? ?"  # torchrun
    r"|(?P<number>\[\d{1,5}\](?!\t):? ?"  # MPICH, unlike the rounds of XGBoost and LightGBM
    r"|\s{0,4}\d{1,5}: (?=\S)(?!\S{1,30}, \S{1,30} avg))"  # srun, unlike the iterations of Darknet
    r"|\([\w:.]{1,80} pid=\d{1,9}(?:, ip=[\w.:]{1,40})?\) ?"  # Ray
)
_DRAWN = (b"{", b"|", b"---", b"===", b"\xe2\x94")  # in dictionaries, tables and rules
_SIGNS = (
    *(word.encode() for word in WORDS),
    b"perplexity",
    b"]:",
    *_DRAWN,
)  # "[sample=8/64]:" begins a block
_CONTROL = re.compile(r"\x1b(?:\[[0-9;?]*+[ -/]*+[@-~]?|\][^\x07\x1b]*+\x07?|.)|[\x08\ufeff]", re.DOTALL)


def find(directory: Path, names: Sequence[str]) -> Iterator[Run]:
    """The console logs of a directory whose metrics stand in no other log there."""
    paths = [directory / name for name in filter(_NAME.fullmatch, names)]
    logs = [path for path in paths if _holds_metrics(path)]
    if logs and not _is_told_elsewhere(directory, names):
        yield from (Run(path, FORMAT, Console(path), has_parallel_streams=True) for path in logs)


def run_in(path: Path) -> Run | None:
    """The run in the file, if some of its lines are surely metrics and it is no log of another format."""
    others = (each.run_in(path) for name, each in formats().items() if name != FORMAT)
    if not _holds_metrics(path) or any(others):
        return None
    return Run(path, FORMAT, Console(path), has_parallel_streams=True)


@dataclass(frozen=True)
class Console:
    """One file of printed lines."""

    path: Path

    def poll(self, cursor: Cursor, limit: int) -> Batch:
        """What was printed since ``cursor``; see `sentinel.sources.base.Source`."""
        try:
            read = _read(self.path, cursor.get("mark", {}), limit)
        except OSError as error:
            return unreadable(self.path, cursor, error)
        if read is None:
            return nothing_new(cursor)
        text = _Text(self.path, cursor, read.restarted)
        consumed = text.parse(read.data, read.offset, limit)
        more = consumed > 0 and (read.more or text.count >= limit)
        cursor = text.memory(read.mark(consumed, waiting=not more))
        return Batch(cursor, text.chunks(), text.complaints, more, config=text.config, lines=text.lines)


class _Text:
    """The lines of one poll."""

    def __init__(self, path: Path, cursor: Cursor, restarted: bool) -> None:
        writers: Mapping[str, Mapping[str, Any]] = cursor.get("writers", {})
        if restarted:
            writers = {name: {"restarted": True} for name in writers}
        self.complaints: list[Complaint] = []
        self.lines: list[Line] = []
        self.config: dict[str, int] = {}  # printed before the first point
        self._path = path
        self._writers = {name: Writer(memory) for name, memory in writers.items()}
        self._unused = Writer({})  # for the next process that prints metrics
        self._overlong: bool = cursor.get("overlong", False) and not restarted  # amid a line that is skipped

    @property
    def count(self) -> int:
        """The number of points and lines so far."""
        return len(self.lines) + sum(
            len(one.records) + len(one.rows.records) for one in self._writers.values()
        )

    def memory(self, mark: Mark) -> dict[str, Any]:
        """The next cursor."""
        writers = {name: writer.memory() for name, writer in self._writers.items()}
        return {"mark": mark, "writers": writers, "overlong": self._overlong}

    def chunks(self) -> list[Chunk]:
        """The points that were read, a chunk for each process."""
        return [
            part.records.chunk(":".join(filter(None, (self._path.name, of, kind))), part.restarted)
            for of, writer in self._writers.items()
            for kind, part in (("", writer), ("rows", writer.rows))
            if part.records
        ]

    def parse(self, data: bytes, offset: int, limit: int) -> int:
        """Read lines until there are ``limit`` points and lines. Gives the number of bytes consumed.

        ``data`` begins at byte ``offset`` of the file.
        """
        start = 0
        while self.count < limit and (end := data.find(b"\n", start)) >= 0:
            if not self._overlong:
                # A power cut leaves zeros, and PowerShell appends UTF-16 to a text in UTF-8.
                *overwritten, line = _segments(data[start:end].replace(b"\0", b"").removesuffix(b"\r"))
                self._parse_overwritten(overwritten)
                self._parse_line(line)
            self._overlong = False
            start = end + 1
        if self.count >= limit:
            return start
        shown = data.rfind(b"\r", start, len(data) - 1)  # not the last byte: a line break may follow it
        if shown >= 0 and b"\0" not in data:
            self._parse_overwritten(_segments(data[start:shown]))
            return shown + 1
        if len(data) - start < LONGEST_LINE:
            return start
        if not self._overlong:
            self._overlong = True
            problem = f"a line is longer than {LONGEST_LINE >> 20} MiB and was skipped"
            self.complaints.append(Complaint(self._path, f"byte {offset + start}", problem))
        return len(data)

    @property
    def plain(self) -> bool:
        """Whether two metric lines of one shape were read."""
        return any(max(writer.shapes.values(), default=0) > 1 for writer in self._writers.values())

    @property
    def in_table(self) -> bool:
        """Whether rows of a table may follow that hold nothing but numbers."""
        return any(writer.columns.names for writer in self._writers.values())

    @property
    def has_rows(self) -> bool:
        """Whether metric lines without a step were read."""
        return any(writer.rows.count for writer in self._writers.values())

    def _parse_overwritten(self, segments: Iterable[str]) -> None:
        """Add what was overwritten. The last state of a bar that counts no steps stands for all."""
        last: re.Match[str] | None = None
        for bar in filter(None, map(_bar, segments)):
            if last and (last["title"] != bar["title"] or not int(bar["count"]) or counts_steps(bar)):
                self._parse_bar(last, ended=False)
            last = bar
            self._progress(bar)
        if last is not None:
            self._parse_bar(last, ended=False)

    def _parse_line(self, line: str) -> None:
        name, text = _split_writer(line)
        if (bar := _bar(text)) is not None:
            self._progress(bar)
            if self._parse_bar(bar, ended=True):
                return
            text = f"{bar['title']} {bar['rest']}{text[bar.end() :]}"
        writer = self._writer(name)
        is_metric = writer is not None and writer.parse(text)
        if writer is not None and (is_metric or writer.rows.waits):
            self._keep(name, writer)
        if not is_metric and text and not text.isspace():
            steps = (one.last_step for one in self._writers.values())
            last = max((step for step in steps if step is not None), default=None)
            self.lines.append(Line(seconds(text), text[:_LONGEST_TEXT], last))
            if last is None:
                self.config |= planned(text)

    def _progress(self, bar: re.Match[str]) -> None:
        writer = self._writer("")
        if writer is not None and not bar["title"].strip():
            writer.progress(int(bar["count"]), int(bar["total"]))
            self._keep("", writer)

    def _parse_bar(self, bar: re.Match[str], ended: bool) -> bool:
        writer = self._writer("") if bar["title"].strip() else None
        if writer is None or not writer.parse_bar(bar, ended):
            return False
        self._keep("", writer)
        return True

    def _writer(self, name: str) -> Writer | None:
        return self._writers.get(name) or (self._unused if len(self._writers) < _MOST_WRITERS else None)

    def _keep(self, name: str, writer: Writer) -> None:
        self._writers[name] = writer
        if writer is self._unused:
            self._unused = Writer({})


def _segments(line: bytes) -> list[str]:
    """The texts that were shown on one line of the terminal, in order."""
    texts = line.decode(errors="replace").split("\r")
    return [text if text.isprintable() else _CONTROL.sub("", text) for text in texts]


def _bar(text: str) -> re.Match[str] | None:
    return BAR.match(text) if "%|" in text else None


def _split_writer(line: str) -> tuple[str, str]:
    """The name of the process that printed the line, and the rest.

    A number before metrics is their step, and not a process, if the rest tells no step.
    """
    found = _WRITER.match(line)
    if found is None or (found["number"] and counts_metrics(line)):
        return "", line
    return found[0].strip(" :"), line[found.end() :]


def _read(path: Path, mark: Mark, limit: int) -> Read | None:
    """Read about ``limit`` new points, but at least one line, unless that is overlong."""
    return read_lines(path, mark, min(LONGEST_LINE, max(_LEAST_READ, limit * _BYTES_A_POINT)), LONGEST_LINE)


@remembered
def _holds_metrics(path: Path) -> bool:
    """Whether two metric lines of one shape stand near the beginning or near the end of the file.

    Metric lines without a step must stand near the beginning, because they count only there.
    """
    try:
        with open_log(path) as file:
            if _is_plain(path, file.read(_SNIFFED), with_rows=True):
                return True
            size = file.seek(0, os.SEEK_END)
            file.seek(max(_SNIFFED, size - _SNIFFED))
            return _is_plain(path, file.read(_SNIFFED), with_rows=False)
    except OSError:
        return False


def _is_plain(path: Path, piece: bytes, with_rows: bool) -> bool:
    text = _Text(path, {}, False)
    *lines, rest = piece.split(b"\n")
    for line in lines:
        if not _may_count(line) and not (text.in_table and line.strip()[:1].isdigit()):
            continue
        text.parse(line + b"\n", 0, sys.maxsize)
        if text.plain or (with_rows and text.has_rows):
            return True
    text.parse(rest, 0, sys.maxsize)  # of a line without end only what a bar drew over
    return text.plain


def _may_count(line: bytes) -> bool:
    """Whether the line may hold metrics or a part of a table. This costs far less than parsing it."""
    lowered = line.replace(b"\0", b"").lower()
    return any(sign in lowered for sign in _SIGNS)


def _is_told_elsewhere(directory: Path, names: Sequence[str]) -> bool:
    """Whether another format finds a run beside the text, or has the text itself."""
    others = [each for name, each in formats().items() if name != FORMAT]
    return any(each.has_text_of(directory) for each in others) or any(
        next(iter(each.find(directory, names)), None) is not None for each in others
    )
