"""CSV and TSV files with a header and a row for each step. One file is one run and one stream.

A file counts if it has the columns of a training log. Less is asked of names that loggers choose: Lightning's
``metrics.csv``, ``progress.csv`` and ``monitor.csv`` of reinforcement learning, Ultralytics' ``results.csv``,
timm's ``summary.csv``, the ``training.log`` of Keras's CSVLogger, Spinning Up's ``progress.txt``, the exports
of W&B and TensorBoard, and similar files. If no column counts the steps, the rows are counted.
"""

from collections.abc import Iterator, Sequence
from pathlib import Path

from sentinel.sources.base import Run, Source
from sentinel.sources.csv.file import CsvLog
from sentinel.sources.csv.header import Header, cells_of, read_header
from sentinel.sources.csv.metric_files import find_metric_files, is_metric_file, part_of_data
from sentinel.sources.readers.files import open_log, plain_utf_8
from sentinel.sources.readers.records import EPOCH_KEYS, MAY_BE_LENGTHS, NUMBER, named
from sentinel.sources.readers.sniffing import COUNTS, HEAD_BYTES, are_metrics, is_log, remembered
from sentinel.sources.readers.two_readers import TwoReaders

FORMAT = "csv"
is_appended_text = True

_NAMES_OF_METRICS = frozenset({"metric", "metric_name", "tag", "key"})
_NAMES_OF_VALUES = frozenset({"value", "metric_value"})
_MAX_STEP_ROWS = 64  # in which a step has to grow


def find(directory: Path, names: Sequence[str]) -> Iterator[Run]:
    """Yield the logs among the names of one directory."""
    yield from find_metric_files(directory, names, FORMAT)
    for name in names:
        if name.endswith((".csv", ".tsv", ".txt", ".log")):
            path = directory / name
            if not is_metric_file(path) and _is_log_file(path):
                yield Run(path, FORMAT, Table(path, is_general=False))


def run_in(path: Path) -> Run | None:
    """Return the run in the file, if it has the columns of a log, whatever its name is."""
    if not _has_columns_of_log(path, "metrics"):
        return None
    return Run(path, FORMAT, Table(path, is_general=False), part=part_of_data(path))


class Table(TwoReaders):
    """One file. The general reader begins if it has no header with the columns of a training log."""

    def reader(self, is_general: bool) -> Source:
        """Return the reader of any rows of numbers, or that of rows below a header."""
        if not is_general:
            return CsvLog(self.path)
        from sentinel.sources.general.text_log import TextLog  # slow to import, and few logs need it

        return TextLog(self.path, is_table=True)


@remembered
def _is_log_file(path: Path) -> bool:
    return _has_columns_of_log(path, path.stem.lower())


def _has_columns_of_log(path: Path, stem: str) -> bool:
    """Return whether a CSV file without a header, named ``stem``, is a log."""
    try:
        with open_log(path) as file:
            head = file.read(HEAD_BYTES)
    except OSError:
        return False
    is_cut = len(head) == HEAD_BYTES
    head = plain_utf_8(head)
    if is_cut:
        head += b"\n\n"  # the header or the first row is that long
    header = read_header(head)
    if header is None:
        return False
    first, *others = head[header.size :].decode(errors="replace").split("\n")[:_MAX_STEP_ROWS]
    filled = next(filter(str.strip, (first, *others)), "")
    cell = filled.split(header.separator)[0].strip(' "\r')
    is_name = bool(cell) and 0 not in (header.time, header.part) and not NUMBER.fullmatch(cell)
    whole = [first, *others[:-1]][: -2 if is_cut else None]
    if not others or not (filled or is_cut) or is_name or not _fits(header, whole) or _is_long(header):
        return False
    if {"r", "l", "t"} <= {*header.names} or (len(others) > 1 and are_metrics(header.names)):
        return True
    return is_log(stem, header.names, _counts(header, [first, *others[:-1]]))


def _is_long(header: Header) -> bool:
    """Return whether each row holds one value, and the name of what was measured beside it."""
    names = [name.strip().lower() for name in header.names]
    return not _NAMES_OF_METRICS.isdisjoint(names) and not _NAMES_OF_VALUES.isdisjoint(names)


def _fits(header: Header, lines: Sequence[str]) -> bool:
    """Return whether one of the lines has a cell for each name, or none is a row."""
    rows = [cells_of(line, header.separator) for line in lines if line.strip()]
    return not rows or any(len(row) == len(header.names) + header.left_out for row in rows)


def _counts(header: Header, lines: Sequence[str]) -> Sequence[str]:
    """Return the cells of some lines that count the steps, or the epochs where a step may be within one."""
    counting = named(header.names, COUNTS)
    if counting is not None and counting.lower() in MAY_BE_LENGTHS:
        counting = named(header.names, EPOCH_KEYS) or counting
    at = header.names.index(counting) if counting is not None else len(header.names)
    return [row[at] for line in lines if len(row := cells_of(line, header.separator)) > at]
