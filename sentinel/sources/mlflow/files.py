"""A run in MLflow's file store: a directory with one file for each metric. All files are one stream.

Points come in the order of their times, then of their steps, then of their names. While a run is being
written, a poll may see a point in one file before a point of the same time in another. They then come in the
order in which they were seen, so a later replay may order points of the same time differently.
"""

import math
import os
import re
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from sentinel.common.lazy_pattern import lazy_pattern
from sentinel.sources.base import Chunk, Cursor, Ending, PollResult, ReadIssue
from sentinel.sources.identity import NO_LABEL, Label
from sentinel.sources.mlflow.database import ending, settings
from sentinel.sources.readers.files import open_log
from sentinel.sources.readers.growing import Read, read_new, unreadable
from sentinel.sources.readers.plain import plain_times
from sentinel.sources.readers.problems import skipped

METRICS = "metrics"
PARAMS = "params"
META = "meta.yaml"
"""What a run's directory holds."""

LINE = lazy_pattern(rb"(-?\d{9,16}) (\S+)(?: (-?\d{1,18})(?: .*)?)?\r?")
"""The time in ms, the value, the step (0 if there is none) and, if the metric has one, its data set."""

_RUN_STATUS = lazy_pattern(rb"^status: (\d)\r?$", re.MULTILINE)
_STATUSES = {"3": "FINISHED", "4": "FAILED", "5": "KILLED"}
_BYTES_A_POINT = 40  # a guess of how far to read for some points; a wrong one only costs time
_MIN_READ = 1 << 12  # of a file; also the longest line
_MAX_SETTING = 1 << 16  # bytes


class Files(msgspec.Struct, frozen=True):
    """A run in the file store."""

    directory: Path

    def poll(self, cursor: Cursor, limit: int) -> PollResult:
        """Return the points that were written since ``cursor``; see `sentinel.sources.base.Source`."""
        try:
            names = _file_names(self.directory / METRICS)
            params = _file_names(self.directory / PARAMS)
        except OSError as error:
            return unreadable(self.directory, cursor, error)
        return _StorePoll(self.directory, cursor).batch(names, params, limit)


class _MetricLines(msgspec.Struct, frozen=True):
    """The complete lines in a piece of the file of one metric."""

    name: str
    piece: Read
    time: NDArray[np.float64]  # ms; never less than before
    step: NDArray[np.int64]
    rank: NDArray[np.int64]  # among points of one time: the step, but never less than before
    value: NDArray[np.float64]
    ends: NDArray[np.int64]  # bytes of each line and all before it
    whole: int  # bytes in all whole lines
    broken: Sequence[int]  # offsets of lines that cannot be read


class _StorePoll:
    def __init__(self, directory: Path, cursor: Cursor) -> None:
        self._directory = directory
        self._marks: dict[str, Any] = dict(cursor.get("files", {}))
        self._unreadable: dict[str, str] = dict(cursor.get("unreadable_files", {}))  # why, by name
        self._restarted: bool = cursor.get("restarted", False)  # no point was read since then
        self._begun: int = cursor.get("begun", 0)  # how often it began anew, as each file's mark has it
        self._broken: int = cursor.get("broken", 0)  # lines
        self._settings: int = cursor.get("settings", 0)
        self._status: str = cursor.get("status", "")
        self._is_labelled: bool = cursor.get("labelled", False)
        self._read_issues: list[ReadIssue] = []

    def batch(self, names: Sequence[str], params: Sequence[str], limit: int) -> PollResult:
        size = max(_MIN_READ, limit * _BYTES_A_POINT // max(1, len(names)))
        pieces = [lines for name in names if (lines := self._read_metric_file(name, size)) is not None]
        chunks, more = self._merge(pieces, limit) if pieces else ([], False)
        config = self._config(params)
        label = NO_LABEL if self._is_labelled else _run_label(self._directory)
        ended = None if more else self._ending()
        cursor = {
            "files": self._marks,
            "unreadable_files": self._unreadable,
            "restarted": self._restarted,
            "begun": self._begun,
            "broken": self._broken,
            "settings": self._settings,
            "status": self._status,
            "labelled": True,
        }
        return PollResult(cursor, chunks, self._read_issues, more, config, ended, label=label)

    def _read_metric_file(self, name: str, size: int) -> _MetricLines | None:
        path = self._directory / METRICS / name
        try:
            piece = read_new(path, self._marks.get(name, {}), size)
        except FileNotFoundError:
            return None
        except OSError as error:
            batch = unreadable(path, {"unreadable": self._unreadable.get(name)}, error)
            self._read_issues += batch.read_issues
            self._unreadable[name] = batch.cursor["unreadable"]
            return None
        self._unreadable.pop(name, None)
        if piece is None:
            return None
        lines = _parsed(name, piece)
        for offset in lines.broken:
            self._broken += 1
            if problem := skipped('is no "time value step"', self._broken):
                self._read_issues.append(ReadIssue(path, f"byte {piece.offset + offset}", problem))
        return lines

    def _merge(self, pieces: Sequence[_MetricLines], limit: int) -> tuple[list[Chunk], bool]:
        """Return the points of all files up to the time that all were read to, and whether there are more.

        A poll reads a piece of each file. What follows a piece may be earlier than points that were read of
        other files. So points that are later than the end of some piece wait for the next poll.
        """
        horizon = min((p.time[-1] for p in pieces if p.piece.more and len(p.time)), default=math.inf)
        time, step, value = (
            np.concatenate([getattr(p, field) for p in pieces]) for field in ("time", "step", "value")
        )
        piece = np.repeat(np.arange(len(pieces)), [len(p.time) for p in pieces])
        order = np.lexsort((np.concatenate([p.rank for p in pieces]), time))
        chosen = order[time[order] <= horizon][:limit]
        counts = np.bincount(piece[chosen], minlength=len(pieces)).tolist()
        self._begin_anew([p.name for p in pieces if p.piece.restarted])
        more = False
        for lines, count in zip(pieces, counts, strict=True):
            complete = count == len(lines.time)
            consumed = lines.whole if complete else int(lines.ends[count - 1]) if count else 0
            more = more or not complete or (lines.piece.more and consumed > 0)
            mark = lines.piece.mark(consumed, waiting=complete and not lines.piece.more)
            generation = self._marks.get(lines.name, {}).get("begun", self._begun)
            self._marks[lines.name] = mark | {"begun": generation}
        if not len(chosen):
            return [], more
        tags, tag = np.unique(piece[chosen], return_inverse=True)
        chunk = Chunk(
            "metrics",
            [pieces[i].name for i in tags],
            tag.astype(np.uint32),
            step[chosen],
            plain_times(time[chosen] / 1e3),
            value[chosen],
            self._restarted,
        )
        self._restarted = False
        return [chunk], more

    def _begin_anew(self, replaced: Sequence[str]) -> None:
        """Record that files were replaced. A run whose files are replaced one by one begins anew once."""
        begun_before = self._begun
        for name in replaced:
            generation = self._marks[name].get("begun", 0) + 1
            self._marks[name] = {"begun": generation}
            self._begun = max(self._begun, generation)
        if self._begun > begun_before:
            self._restarted = True
            self._status = ""  # of another training, whose end may be the same

    def _config(self, names: Sequence[str]) -> dict[str, Any]:
        if len(names) == self._settings:
            return {}
        self._settings = len(names)
        texts = []
        for name in names:
            with suppress(OSError), open_log(self._directory / PARAMS / name) as file:
                texts.append((name, file.read(_MAX_SETTING).decode(errors="replace")))
        return settings(texts)

    def _ending(self) -> Ending | None:
        status_before = self._status
        self._status = ""
        with suppress(OSError), open_log(self._directory / META) as file:
            status = _RUN_STATUS.search(file.read(_MAX_SETTING))
            self._status = _STATUSES.get(status[1].decode(), "") if status else ""
        return ending(self._status) if self._status != status_before else None


def _run_label(directory: Path) -> Label:
    """Return the names of a run and of its experiment, as far as the store has them."""
    return Label.of(_meta(directory).get("run_name"), _meta(directory.parent).get("name"))


def _meta(directory: Path) -> Mapping[str, Any]:
    """Return what a store says of a run or of an experiment."""
    from sentinel.sources.sidecars.plain_yaml import load  # slow to import

    with suppress(OSError, ValueError), open_log(directory / META) as file:
        content = load(file.read(_MAX_SETTING))
        return content if isinstance(content, dict) else {}
    return {}


def _parsed(name: str, piece: Read) -> _MetricLines:
    time: list[float] = []
    step: list[int] = []
    rank: list[int] = []
    value: list[float] = []
    ends: list[int] = []
    broken: list[int] = []
    start = 0
    while (end := piece.data.find(b"\n", start)) >= 0:
        metric_line = LINE.fullmatch(piece.data, start, end)
        try:
            if metric_line is None:
                raise ValueError
            number = float(metric_line[2])
        except ValueError:
            if end > start:
                broken.append(start)
        else:
            stamp = float(metric_line[1])
            count = int(metric_line[3] or 0)
            rank.append(max(count, rank[-1]) if time and stamp <= time[-1] else count)
            time.append(max(stamp, time[-1]) if time else stamp)
            step.append(count)
            value.append(number)
            ends.append(end + 1)
        start = end + 1
    if start == 0 and piece.more:
        broken.append(0)  # longer than any line that MLflow writes
        start = len(piece.data)
    return _MetricLines(
        name,
        piece,
        np.array(time, dtype=np.float64),
        np.array(step, dtype=np.int64),
        np.array(rank, dtype=np.int64),
        np.array(value, dtype=np.float64),
        np.array(ends, dtype=np.int64),
        start,
        broken,
    )


def _file_names(directory: Path) -> list[str]:
    """Return the paths of all files below the directory, which name metrics; none if it is missing."""
    names: list[str] = []
    pending = [""]
    while pending:
        prefix = pending.pop()
        try:
            with os.scandir(directory / prefix) as entries:
                for entry in entries:
                    if entry.is_dir(follow_symlinks=False):
                        pending.append(f"{prefix}{entry.name}/")
                    elif entry.is_file():
                        names.append(f"{prefix}{entry.name}")
        except FileNotFoundError:
            continue
    return sorted(name for name in names if name.isprintable())
