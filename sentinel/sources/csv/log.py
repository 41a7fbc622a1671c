"""CSV and TSV files with a header and a row for each step. One file is one run and one stream.

A file counts if it has a name that loggers choose and the columns of a training log: Lightning's
``metrics.csv``, ``progress.csv`` and ``monitor.csv`` of reinforcement learning, Ultralytics' ``results.csv``,
timm's ``summary.csv``, the ``training.log`` of Keras's CSVLogger, Spinning Up's ``progress.txt``, the exports
of W&B and TensorBoard, and similar files. If no column counts the steps, the rows are counted.
"""

from collections.abc import Iterator, Sequence
from pathlib import Path

from sentinel.sources.base import Run
from sentinel.sources.csv.file import CsvLog
from sentinel.sources.csv.header import read_header
from sentinel.sources.csv.metric_files import find_metric_files, is_metric_file
from sentinel.sources.reading.encoding import plain_utf_8
from sentinel.sources.reading.files import open_log
from sentinel.sources.reading.records import NUMBER
from sentinel.sources.reading.sniffing import HEAD_BYTES, is_log, is_log_name, remembered

FORMAT = "csv"


def find(directory: Path, names: Sequence[str]) -> Iterator[Run]:
    """The logs among the names of one directory."""
    yield from find_metric_files(directory, names, FORMAT)
    for name in names:
        if name.endswith((".csv", ".tsv", ".txt", ".log")):
            path = directory / name
            if not is_metric_file(path) and _is_log_file(path):
                yield Run(path, FORMAT, CsvLog(path))


def run_in(path: Path) -> Run | None:
    """The run in the file, if it has the columns of a log, whatever its name is."""
    return Run(path, FORMAT, CsvLog(path)) if _has_columns_of_log(path, "metrics") else None


@remembered
def _is_log_file(path: Path) -> bool:
    """Whether the file has the name and the columns of a log."""
    stem = path.stem.lower()
    return is_log_name(stem) and _has_columns_of_log(path, stem)


def _has_columns_of_log(path: Path, stem: str) -> bool:
    """Whether a file named ``stem`` with this content is a log; its first row does not begin with a name."""
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
    first, end, _ = head[header.size :].decode(errors="replace").partition("\n")
    cell = first.split(header.separator)[0].strip(' "\r')
    is_name = bool(cell) and 0 not in (header.time, header.part) and not NUMBER.fullmatch(cell)
    return bool(end) and not is_name and ({"r", "l", "t"} <= {*header.names} or is_log(stem, header.names))
