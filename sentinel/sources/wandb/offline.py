"""W&B's runs on disk, whether wandb sent them to a server or not.

A ``run-*.wandb`` file is one run and one stream. It is a log of protobuf messages, to which wandb appends all
that it would send: the configuration, the history (the metrics), the console output and finally the exit
code.
"""

import json
import math
import re
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
from google.protobuf.message import DecodeError
from msgspec.structs import replace

from sentinel.common.lazy_pattern import lazy_pattern
from sentinel.sources.base import Chunk, Cursor, Ending, EndKind, Line, PollResult, ReadIssue, Run
from sentinel.sources.identity import Label
from sentinel.sources.readers.growing import Mark, Read, nothing_new, unreadable
from sentinel.sources.readers.leveldb import FileHeader, Log, read_log
from sentinel.sources.readers.plain import LATEST, Plain, flat
from sentinel.sources.readers.problems import summed
from sentinel.sources.wandb.history import read_history
from sentinel.sources.wandb.messages import item_name, message_type
from sentinel.sources.wandb.steps import Steps, points

FORMAT = "wandb"

_INTERRUPTED = 255  # wandb/sdk/lib/exit_hooks.py records it for a KeyboardInterrupt
_WANDB_NAME = lazy_pattern(r"run-(?P<id>.+)\.wandb", re.DOTALL)

_RUN_DIRECTORY = lazy_pattern(r"(?:offline-)?run-\d{8}_\d{6}-.+")
_INTERNAL = ("logs", "tmp")  # directories of a run that are about W&B itself

_WANDB_HEADER = FileHeader("W&B", b":W&B\xe1\xbe", [0])
_BYTES_A_POINT = 96  # a guess, with the summary, of how far to read for some points; a wrong one costs time

_NUMBER_FIELD = 0x08  # field of a Record
_HISTORY = 0x12  # likewise
_UNREAD = frozenset(b"\x1a\x32\x3a")  # the frequent ones of summaries, files and system metrics

_MAX_OUTPUT_CHARACTERS = 4096  # characters of console output


def find(directory: Path, names: Sequence[str]) -> Iterator[Run]:
    """Yield the runs in this directory. A run that has the directory for itself has its path."""
    for name in names:
        if id_in_name := _WANDB_NAME.fullmatch(name):
            is_own = directory.name.endswith(f"-{id_in_name['id']}")
            yield Run(directory if is_own else directory / name, FORMAT, WandbFile(directory / name))


def is_internal(directory: str) -> bool:
    """Return whether a directory of a run is only about W&B itself."""
    above, _, name = directory.rpartition("/")
    return name in _INTERNAL and _RUN_DIRECTORY.fullmatch(above.rpartition("/")[2]) is not None


def has_text_of(directory: Path) -> bool:
    """Return whether the directory is a run's ``files``, whose ``.wandb`` file has the printed text, too."""
    return directory.name == "files" and any(directory.parent.glob("run-*.wandb"))


class WandbFile(msgspec.Struct, frozen=True):
    """One ``.wandb`` file."""

    path: Path

    def poll(self, cursor: Cursor, limit: int) -> PollResult:
        """Return what was logged since ``cursor``; see `sentinel.sources.base.Source`."""
        try:
            news = read_log(self.path, cursor.get("mark", {}), limit * _BYTES_A_POINT)
        except OSError as error:
            return unreadable(self.path, cursor, error)
        if news is None:
            return nothing_new(cursor)
        piece, log = news
        messages = _Messages(self.path, {"restarted": True} if piece.restarted else cursor)
        consumed, more = messages.parse(piece, log, limit * _BYTES_A_POINT)
        return messages.batch(piece.mark(consumed, waiting=not more), more)


class _Messages:
    """The content of the messages of one poll, in their order."""

    def __init__(self, path: Path, cursor: Cursor) -> None:
        self._refused: str = cursor.get("refused", "")  # why the file is not read
        self._path = path
        self._steps = Steps(cursor.get("steps", {}))
        self._unfinished: dict[str, str] = dict(cursor.get("unfinished", {}))  # last line of each output
        self._restarted: bool = cursor.get("restarted", False)  # no point was read since then
        self._history: list[tuple[int, bytes]] = []  # offset and bytes of records that are not points yet
        self._foreign: list[int] = []  # offsets of records that are no messages
        self._chunks: list[Chunk] = []
        self._read_issues: list[ReadIssue] = []
        self._config: dict[str, Plain] = {}  # that precedes the next point
        self._exit: int | None = cursor.get("exit")  # code; a last row may follow it
        self._lines: list[Line] = []
        self._label = Label()

    def batch(self, mark: Mark, more: bool) -> PollResult:
        """Return the result of the poll."""
        cursor = {
            "mark": mark,
            "steps": self._steps.memory(),
            "unfinished": self._unfinished,
            "restarted": self._restarted,
            "refused": self._refused,
            "exit": self._exit,
        }
        chunks = self._chunks
        complaints = self._read_issues
        ending = None
        if self._exit is not None:
            failure = EndKind.PREEMPTED if self._exit == _INTERRUPTED else EndKind.CRASHED
            kind = failure if self._exit else EndKind.FINISHED
            ending = Ending(kind, f"exit code {self._exit} in the exit record")
        return PollResult(
            cursor, chunks, complaints, more, ending=ending, lines=self._lines, label=self._label
        )

    def parse(self, piece: Read, log: Log, most: int) -> tuple[int, bool]:
        """Parse up to ``most`` bytes of history. Gives the bytes consumed, and whether more follow."""
        if piece.offset == 0 and not self._starts_well(piece.data):
            return 0, False
        if self._refused:
            return len(piece.data), piece.more
        offset = 0  # about where the record begins
        for record, end in zip(log.records, log.ends, strict=True):
            try:
                most -= self._add_message(offset, record)
            except (DecodeError, IndexError):
                self._foreign.append(offset)
            offset = end
            if most <= 0:
                break
        self._make_points()
        if self._config:
            self._chunk([])
        consumed = offset if most <= 0 else log.consumed
        problems = [problem for problem in log.problems if problem.offset < consumed]
        problems += summed(np.array(sorted(self._foreign)), "record is no message of wandb's and was skipped")
        for problem in problems:
            where = f"byte {piece.offset + problem.offset}"
            self._read_issues.append(ReadIssue(self._path, where, problem.text))
        return consumed, piece.more or consumed < log.consumed

    def _starts_well(self, data: bytes) -> bool:
        """Return whether the header is complete. A file with a wrong header is refused."""
        try:
            return _WANDB_HEADER.version(data) is not None
        except ValueError as error:
            self._refused = str(error)
            self._read_issues.append(ReadIssue(self._path, "", self._refused))
            return True

    def _add_message(self, offset: int, record: bytes) -> int:
        """Add one message. Gives its bytes of history."""
        _, at = _varint(record, 1) if record[0] == _NUMBER_FIELD else (0, 0)
        if record[at] == _HISTORY:
            length, begin = _varint(record, at + 1)
            self._history.append((offset, record[begin : begin + length]))
            return length
        if record[at] not in _UNREAD:
            message = message_type("Record").FromString(record)
            match message.WhichOneof("record_type"):
                case "run":
                    self._label = Label.of(message.run.display_name, message.run.project)
                    self._configure(message.run.config)
                case "config":
                    self._configure(message.config)
                case "metric":
                    self._define(message.metric)
                case "output" | "output_raw" as kind:
                    self._print(getattr(message, kind))
                case "exit":
                    self._exit = message.exit.exit_code
        return 0

    def _configure(self, config: Any) -> None:
        settings: dict[str, Any] = {}
        for item in config.update:
            with suppress(ValueError, RecursionError):
                settings[item_name(item)] = json.loads(item.value_json)
        if news := {key: value for key, value in flat(settings).items() if not key.startswith("_wandb.")}:
            self._make_points()
            self._config |= news

    def _define(self, metric: Any) -> None:
        name, axis = (
            text.replace(r"\.", ".") for text in (metric.name or metric.glob_name, metric.step_metric)
        )
        if self._steps.changed_by(name, axis):
            self._make_points()
            self._steps.define(name, axis)

    def _print(self, output: Any) -> None:
        """Add a piece of console output, which may hold any number of lines."""
        channel = str(output.output_type)
        *ended, rest = (self._unfinished.pop(channel, "") + output.line).split("\n")
        time = output.timestamp.seconds + output.timestamp.nanos / 1e9
        time = time if 0 < time < LATEST else math.nan
        lines = (line.rstrip("\r").rpartition("\r")[2][:_MAX_OUTPUT_CHARACTERS] for line in ended)
        self._lines += [Line(time, line) for line in lines if line.strip()]
        if rest:
            overwritten = rest.rfind("\r", 0, -1) + 1  # by progress bars
            self._unfinished[channel] = rest[overwritten:][:_MAX_OUTPUT_CHARACTERS]

    def _make_points(self) -> None:
        """Make points of the history so far, by the definitions so far."""
        history = self._history
        self._history = []
        if not history:
            return
        try:
            self._chunk([record for _, record in history])
        except (ValueError, DecodeError):
            for offset, record in history:
                try:
                    self._chunk([record])
                except (ValueError, DecodeError):
                    self._foreign.append(offset)

    def _chunk(self, records: Sequence[bytes]) -> None:
        chunk = points(self._path.name, read_history(records), len(records), self._steps)
        has_points = len(chunk.step) > 0
        if not has_points and not self._config:
            return
        restarted = self._restarted and has_points
        self._chunks.append(replace(chunk, restarted=restarted, config=self._config))
        self._restarted = self._restarted and not has_points
        self._config = {}


def _varint(data: bytes, at: int) -> tuple[int, int]:
    """Return the number that begins at ``at``, and where it ends."""
    number = 0
    shift = 0
    while data[at] & 0x80:
        number |= (data[at] & 0x7F) << shift
        at = at + 1
        shift = shift + 7
    return number | data[at] << shift, at + 1
