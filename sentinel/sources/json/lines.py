"""JSON lines: one object on each line, appended while the run goes on. One file is one run.

It is one stream as well, unless a column names the processes that write into it (`json/writers.py`).

A file called ``*.jsonl`` or ``*.ndjson`` counts if its first lines are the log of a training and no data set
(`sniffing.are_log`). A ``*.json``, ``*.log`` or ``*.txt`` counts only if nearly all of its first lines are
objects with a step (Detectron2's ``metrics.json``, OpenMMLab's ``*.log.json``).

A line without a step or a number of its own, such as ``{"config": {"lr": 0.001}}``, states settings.

The last line counts before its line break is there, as soon as it is a complete object. It can no longer
change, because the beginning of an object is never an object. For the same reason, whatever follows an object
on its line is read as a line of its own.
"""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec
import orjson

from sentinel.common.lazy_pattern import lazy_pattern
from sentinel.sources.base import Chunk, Cursor, PollResult, ReadIssue, Run
from sentinel.sources.json.documents import stated_settings
from sentinel.sources.json.writers import Writers
from sentinel.sources.readers.files import open_log, plain_utf_8
from sentinel.sources.readers.growing import Read, nothing_new, read_lines, unreadable
from sentinel.sources.readers.plain import JSON, flat
from sentinel.sources.readers.problems import skipped
from sentinel.sources.readers.records import EPOCH_KEYS, STEP_KEYS, TIME_KEYS, is_metrics, named
from sentinel.sources.readers.sniffing import are_log, remembered

FORMAT = "jsonl"
is_appended_text = True

MAX_LINE = 4 << 20
"""Bytes. A longer line is skipped."""

_BYTES_A_POINT = 32  # a guess of how far to read for some points; a wrong one only costs time
_MIN_READ = 1 << 16
_MAX_READ = 24 << 20  # bytes; this bounds the memory of a poll
_MIN_FAST_BYTES = 1 << 16  # fewer bytes are read as fast line by line
_MIN_FAST_POINTS = 4096  # and fewer points
_MAX_AT_ONCE = 10_000  # objects of a line, so that a file without line breaks is read in pieces as well
_SNIFFED_LINES = 64
_LINES_BY_NAME = (".jsonl", ".ndjson")
_ENDINGS = (*_LINES_BY_NAME, ".json", ".log", ".txt")
_MMENGINE_COPY = lazy_pattern(r"\d{8}_\d{6}\.json")  # of what scalars.json holds

_BLANK = lazy_pattern("[\ufeff\x00 \t\r]+")  # with byte order marks, and the zeros that a power cut leaves
_OBJECT = lazy_pattern(r'\{\s*(?:["}]|$)')
_BARE_NUMBER = lazy_pattern(
    r"(?<=[:,\[\s])[+-]?(?:nan|inf(?:inity)?|\d++(?:\.\d*+)?(?:e[+-]?\d++)?|\.\d++(?:e[+-]?\d++)?)"
    r"(?=\s*[,\]}])",
    re.IGNORECASE | re.ASCII,
)
"""Numbers as C and others write them: ``nan``, ``-inf``, ``.5``, ``1.``, ``+1``."""


def find(directory: Path, names: Sequence[str]) -> Iterator[Run]:
    """Yield the JSON lines files among the names of one directory."""
    has_scalars = "scalars.json" in names
    for name in names:
        if has_scalars and _MMENGINE_COPY.fullmatch(name):
            continue
        if name.endswith(_ENDINGS) and _are_logged_lines(directory / name):
            yield Run(directory / name, FORMAT, JsonLines(directory / name), has_parallel_streams=True)


def run_in(path: Path) -> Run | None:
    """Return the run in the file, if its lines are those of a log, whatever its name is."""
    return Run(path, FORMAT, JsonLines(path), has_parallel_streams=True) if _are_logged_lines(path) else None


class JsonLines(msgspec.Struct, frozen=True):
    """One file with a JSON object on each line."""

    path: Path

    def poll(self, cursor: Cursor, limit: int) -> PollResult:
        """Return the points of the lines that were completed since ``cursor``."""
        try:
            piece = _read_json_lines(self.path, cursor.get("mark", {}), limit)
        except OSError as error:
            return unreadable(self.path, cursor, error)
        if piece is None:
            return nothing_new(cursor)
        lines = _Lines(self.path, cursor, piece.restarted)
        consumed = lines.parse(piece, limit)
        limited = (lines.at_once or lines.points >= limit) and consumed < len(piece.data)
        more = piece.more or limited
        chunks = lines.chunks()
        return PollResult(
            lines.memory(piece.mark(consumed, waiting=not more)), chunks, lines.read_issues, more
        )


class _Lines:
    """The lines of one poll: which are complete, which cannot be read, and the points of the others."""

    def __init__(self, path: Path, cursor: Cursor, restarted: bool) -> None:
        self.path = path
        self.read_issues: list[ReadIssue] = []
        self.at_once = False  # whether the last lines were read at once, and more can follow
        self._writers = Writers(path.name, cursor.get("writers", {}), restarted)
        cursor = {} if restarted else cursor
        self._finished: int = cursor.get("finished", 0)  # lines
        self._broken: int = cursor.get("broken", 0)  # lines
        self._overlong: bool = cursor.get(
            "overlong", False
        )  # whether the next bytes belong to a line that is skipped
        self._settled = False  # whether this poll read settings

    def memory(self, mark: Mapping[str, Any]) -> dict[str, Any]:
        """Return the next cursor. Call `chunks` before."""
        return {
            "mark": mark,
            "writers": self._writers.memory(),
            "finished": self._finished,
            "broken": self._broken,
            "overlong": self._overlong,
        }

    @property
    def points(self) -> int:
        """How many points were read."""
        return self._writers.count

    def chunks(self) -> list[Chunk]:
        """Return the points and settings that were read, if there are any."""
        return [*self._writers.chunks()]

    def parse(self, piece: Read, limit: int) -> int:
        """Read lines until there are ``limit`` points. Gives the number of bytes consumed."""
        data = piece.data
        start = 0
        if not self._overlong and (start := self._parse_at_once(data, limit)):
            return start
        while start < len(data) and self.points < limit:
            end = data.find(b"\n", start)
            length = (
                self._parse_line(data[start:end])
                if end >= 0
                else self._parse_unfinished(data[start:], piece.more)
            )
            if not length:
                break
            start += length
            if self._finished == 1 and self._settled and (length := self._parse_at_once(data[start:], limit)):
                return start + length
        return start

    def _parse_at_once(self, data: bytes, limit: int) -> int:
        """Read many lines at once. Gives the bytes read; 0 if the lines must be read one by one."""
        if len(data) < _MIN_FAST_BYTES or limit < _MIN_FAST_POINTS:
            return 0
        from sentinel.sources.json.rows import read_rows  # with polars, which is slow to import

        if rows := read_rows(data, limit):
            frame, size = rows
            if self._writers.add_rows(frame):
                self.at_once = True
                self._finished += frame.height
                return size
        return 0

    def _parse_line(self, line: bytes) -> int:
        objects, length = ([], len(line)) if self._overlong else _objects(line)
        self._add_records(objects)
        if length < len(line):
            if len(objects) == _MAX_AT_ONCE:
                return length
            self._broken += 1
            if problem := skipped("is not a JSON object", self._broken):
                self._complain(self._location, problem)
        self._overlong = False
        self._finished += 1
        return len(line) + 1

    def _parse_unfinished(self, rest: bytes, more: bool) -> int:
        if self._overlong:
            return len(rest)
        if more and len(rest) < MAX_LINE:
            return 0  # the next poll reads more of the line
        objects, length = _objects(rest)
        self._add_records(objects)
        if objects:
            return length
        if len(rest) < MAX_LINE:
            return 0
        self._complain(self._location, f"is longer than {MAX_LINE >> 20} MiB and was skipped")
        self._overlong = True
        return len(rest)

    def _add_records(self, objects: list[dict[str, Any]]) -> None:
        for record in objects:
            if settings := _settings_in_record(record):
                self._settled = True
                self._writers.configure(record, flat(settings))
            else:
                self._writers.add(record, self._finished + 1)

    @property
    def _location(self) -> str:
        return f"line {self._finished + 1}"

    def _complain(self, location: str, problem: str) -> None:
        self.read_issues.append(ReadIssue(self.path, location, problem))


def _read_json_lines(path: Path, mark: Mapping[str, Any], limit: int) -> Read | None:
    """Read about ``limit`` new points, but at least one line, unless that is overlong."""
    return read_lines(path, mark, min(_MAX_READ, max(_MIN_READ, limit * _BYTES_A_POINT)), MAX_LINE)


def _settings_in_record(record: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the settings in a record that states nothing else."""
    stated = stated_settings(record)
    if not stated or named(record, (*STEP_KEYS, *EPOCH_KEYS)) is not None:
        return {}
    numbers = [name for name, value in record.items() if type(value) in (int, float)]
    return stated if all(name.lower() in TIME_KEYS for name in numbers) else {}


def _objects(line: bytes) -> tuple[list[dict[str, Any]], int]:
    """Return the first JSON objects of the line, and how many of its bytes they take."""
    if not line or line.isspace():
        return [], len(line)
    try:
        record = orjson.loads(line)
        return ([record], len(line)) if type(record) is dict else ([], 0)
    except orjson.JSONDecodeError:
        pass  # NaN and infinities are no JSON, but Python writes and reads them
    objects: list[dict[str, Any]] = []
    text = line.decode(errors="surrogateescape")
    end = _skip_blank(text, 0)
    if end < len(text) and not _OBJECT.match(text, end):
        return [], 0
    while end < len(text) and len(objects) < _MAX_AT_ONCE:
        try:
            record, after = JSON.raw_decode(text, end)
        except (ValueError, RecursionError):
            break
        if type(record) is not dict:
            break
        objects.append(record)
        end = _skip_blank(text, after)
    if not objects and end < len(text):
        record = _loosely(text)
        return ([record], len(line)) if type(record) is dict else ([], 0)
    return objects, len(line) - len(text[end:].encode(errors="surrogateescape"))


def _loosely(text: str) -> Any:
    """Return the JSON value in a text with numbers that JSON does not allow; None if it is still none."""
    try:
        return JSON.decode(_BARE_NUMBER.sub(lambda number: json.dumps(float(number[0])), text))
    except (ValueError, RecursionError):
        return None


def _skip_blank(text: str, start: int) -> int:
    blank = _BLANK.match(text, start)
    return blank.end() if blank else start


@remembered
def _are_logged_lines(path: Path) -> bool:
    """Return whether the lines at the beginning of the file are those of a log."""
    try:
        with open_log(path) as file:
            head = plain_utf_8(file.read(_MIN_READ))
    except OSError:
        return False
    *whole, rest = head.split(b"\n", _SNIFFED_LINES)
    is_named = path.suffix in _LINES_BY_NAME
    broken = 0
    records = list[dict[str, Any]]()
    for number, line in enumerate((*whole, rest)[:_SNIFFED_LINES]):
        objects, length = _objects(line)
        records += objects
        broken += number < len(whole) and length < len(line)
        if not is_named and 4 * broken > len(whole):
            return False
    if not is_named and (len(records) < 2 or not any(map(is_metrics, records))):
        return False
    return are_log(path.stem, records)
