"""Finds the runs in MLflow's file store (``mlruns/``) and its SQLite store (``mlflow.db``).

In the file store the path of a run is its directory. In a database it is the path of the database, followed
by the id of the run. Deleted runs do not count.
"""

import os
import re
import sqlite3
from collections.abc import Collection, Iterator, Sequence
from itertools import islice
from pathlib import Path

from sentinel.common.lazy_pattern import lazy_pattern
from sentinel.common.paths import is_directory, is_file
from sentinel.sources.base import Run
from sentinel.sources.mlflow.database import SqliteRun
from sentinel.sources.mlflow.files import LINE, META, METRICS, Files
from sentinel.sources.readers import sqlite
from sentinel.sources.readers.files import open_log

FORMAT = "mlflow"

_RUN_ID = lazy_pattern(r"[\w-]{1,64}", re.ASCII)
_METRIC_COLUMNS = {"run_uuid", "key", "value", "timestamp", "step", "is_nan"}
_MAX_RUNS = 10_000  # of one database, the newest
_MAX_METRIC_FILES = 5  # of a run's metrics whose beginning is looked at
_DELETED = lazy_pattern(rb"^lifecycle_stage:\s*deleted", re.MULTILINE)
_MAX_META_BYTES = 1 << 14  # of a run's description
_HEAD_BYTES = 1 << 10  # of a file, in which its first line ends


def find(directory: Path, names: Sequence[str]) -> Iterator[Run]:
    """Yield the run whose directory this is, and the runs in the directory's databases."""
    if os.access(f"{directory}/{METRICS}", os.F_OK):
        metrics = directory / METRICS
        is_run = is_directory(metrics) and (META in names or _holds_metrics(metrics))
        if is_run and not _is_deleted(directory):
            yield Run(directory, FORMAT, Files(directory))
    for name in names:
        if name.endswith(sqlite.ENDINGS) and sqlite.is_database(path := directory / name):
            yield from (Run(path / run, FORMAT, SqliteRun(path, run)) for run in _ids(path, _MAX_RUNS) or ())


def _holds_metrics(directory: Path) -> bool:
    """Return whether the first files begin like a metric's file. A copied store may lack other files."""
    files = (Path(folder, name) for folder, _, names in os.walk(directory) for name in sorted(names))
    heads = []
    for path in islice(files, _MAX_METRIC_FILES):
        try:
            with open_log(path) as file:
                heads.append(file.read(_HEAD_BYTES).partition(b"\n")[0])
        except OSError:
            return False
    return bool(heads) and all(map(LINE.fullmatch, heads))


def deleted(paths: Collection[Path]) -> frozenset[Path]:
    """Return the runs among these paths that are deleted. Each database is asked once."""
    by_database: dict[Path, list[Path]] = {}
    gone = {path for path in paths if _is_deleted(path)}
    for path in paths:
        if is_file(path.parent):
            by_database.setdefault(path.parent, []).append(path)
    for database, runs in by_database.items():
        ids = _ids(database, -1)
        if ids is not None:
            gone |= {*runs} - {database / run for run in ids}
    return frozenset(gone)


def _is_deleted(directory: Path) -> bool:
    """Return whether the file store says that a run is deleted."""
    try:
        with open_log(directory / META) as file:
            return _DELETED.search(file.read(_MAX_META_BYTES)) is not None
    except OSError:
        return False


def _ids(path: Path, max_ids: int) -> list[str] | None:
    """Return the ids of the newest runs in a database that are not deleted, all of them if ``max_ids`` is
    negative; None if the database is not MLflow's or cannot be read now.
    """
    query = "SELECT run_uuid FROM runs WHERE lifecycle_stage = 'active' ORDER BY rowid DESC LIMIT ?"

    def ids(connection: sqlite3.Connection) -> list[str] | None:
        if not sqlite.columns(connection, "metrics") >= _METRIC_COLUMNS:
            return None
        rows = connection.execute(query, (max_ids,))
        return [run for (run,) in rows if _RUN_ID.fullmatch(str(run))]

    try:
        return sqlite.read(path, ids)
    except (OSError, sqlite3.Error):
        return None
