"""Runs that keep several files: DVCLive, TorchRL's CSVLogger and DeepSpeed's CSV monitor one for each metric,
CatBoost one for each part of the data.

Each file is a stream, because nothing says in which order the points of two files were logged.
"""

import os
from collections.abc import Iterator, Sequence
from itertools import pairwise
from pathlib import Path

import msgspec
from msgspec.structs import replace

from sentinel.common.paths import exists, is_directory
from sentinel.sources.base import Chunk, Cursor, PollResult, ReadIssue, Run
from sentinel.sources.csv.file import CsvLog
from sentinel.sources.readers.splits import of_part

_DVCLIVE = ("plots", "metrics")  # the directories below that of the run
_TORCHRL = "scalars"
_BESIDE_TORCHRL = ("videos", "texts")
_DEEPSPEED = "Train_Samples_"  # the beginning of the names of its files
_CATBOOST = "learn_error.tsv"
_CATBOOST_PARTS = {_CATBOOST: "", "test_error.tsv": "test"}
_MAX_METRIC_FILES = 4096


class MetricFiles(msgspec.Struct, frozen=True):
    """The files of one run, in ``directory`` or below."""

    directory: Path

    def poll(self, cursor: Cursor, limit: int) -> PollResult:
        """Read what was logged since ``cursor``; see `sentinel.sources.base.Source`."""
        cursors = dict(cursor)
        more = False
        chunks: list[Chunk] = []
        complaints: list[ReadIssue] = []
        for name, log in self._logs():
            batch = log.poll(cursors.get(name, {}), limit) if limit > 0 else None
            if batch is None:
                more = True
                break
            cursors[name] = batch.cursor
            chunks += (named_chunks := [self._named(chunk, log.path, name) for chunk in batch.chunks])
            limit -= sum(chunk.value.size for chunk in named_chunks)
            complaints += batch.read_issues
            more = more or batch.more
        return PollResult(cursors, chunks, complaints, more)

    def flush(self, cursor: Cursor) -> Sequence[Chunk]:
        """Return the points of last rows without a line break; see `sentinel.sources.base.Flushable`."""
        return [
            self._named(chunk, log.path, name)
            for name, log in self._logs()
            for chunk in log.flush(cursor.get(name, {}))
        ]

    def _logs(self) -> Iterator[tuple[str, CsvLog]]:
        columns = ("step", "value") if _is_of_torchrl(self.directory) else None
        for path in _metric_files(self.directory):
            yield str(path.relative_to(self.directory)), CsvLog(path, columns)

    def _named(self, chunk: Chunk, path: Path, name: str) -> Chunk:
        return replace(chunk, stream=name, tags=_tags(self.directory, path, chunk.tags))


def find_metric_files(directory: Path, names: Sequence[str], format_: str) -> Iterator[Run]:
    """Yield the run whose metrics lie in this directory, each in a file of its own."""
    is_dvclive = directory.parts[-2:] == _DVCLIVE
    is_one = is_dvclive or _is_of_torchrl(directory) or _CATBOOST in names
    is_one = is_one or any(map(_is_of_deepspeed, names))
    if is_one and next(_metric_files(directory), None) is not None:
        yield Run(directory, format_, MetricFiles(directory), has_parallel_streams=True)


def is_metric_file(path: Path) -> bool:
    """Return whether the file holds a part of a run, so that it is no run of its own."""
    if path.name in _CATBOOST_PARTS and exists(path.with_name(_CATBOOST)):
        return True
    return _DVCLIVE in pairwise(path.parent.parts) or _is_of_deepspeed(path.name)


def part_of_data(path: Path) -> str:
    """Return the part of the data that the name of a file tells, if its columns do not."""
    return _CATBOOST_PARTS.get(path.name, "")


def _is_of_torchrl(directory: Path) -> bool:
    beside = all(is_directory(directory.parent / name) for name in _BESIDE_TORCHRL)
    return directory.name == _TORCHRL and beside


def _is_of_deepspeed(name: str) -> bool:
    return name.startswith(_DEEPSPEED) and name.endswith(".csv")


def _metric_files(directory: Path) -> Iterator[Path]:
    """Yield the files of metrics, in an order that does not depend on the file system."""
    files: list[Path] = []
    for above, folders, names in os.walk(directory):
        if _is_of_torchrl(directory) or directory.parts[-2:] == _DVCLIVE:
            files += [Path(above, name) for name in names if name.endswith((".csv", ".tsv"))]
        else:
            files += [
                Path(above, name) for name in names if _is_of_deepspeed(name) or name in _CATBOOST_PARTS
            ]
            folders.clear()
    yield from sorted(files)[:_MAX_METRIC_FILES]


def _tags(directory: Path, path: Path, columns: Sequence[str]) -> Sequence[str]:
    """Return the names of the metrics in the ``columns`` of a file."""
    if path.name in _CATBOOST_PARTS:
        part = part_of_data(path)
        return [of_part(column, part) if part else column for column in columns]
    if len(columns) > 1:
        return columns
    if not _is_of_deepspeed(path.name):
        return [str(path.relative_to(directory).with_suffix(""))]
    before = path.stem.removesuffix(columns[0].replace(" ", "_"))  # its slashes are underscores there
    return [before.replace("_", "/") + columns[0]]
