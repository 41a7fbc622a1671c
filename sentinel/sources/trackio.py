"""Trackio's local store: one SQLite database for each project, with all of its runs.

The path of a run is the path of the database, followed by the run's name. Newer databases give each run an
id, and then the beginning of the id follows as well. The points of a run are one stream, in the order in
which they were written.
"""

import math
import sqlite3
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import msgspec

from sentinel.sources.base import Cursor, PollResult, ReadIssue, Run
from sentinel.sources.readers import sqlite
from sentinel.sources.readers.plain import JSON, flat
from sentinel.sources.readers.problems import skipped
from sentinel.sources.readers.records import Records

FORMAT = "trackio"

_METRIC_COLUMNS = {"id", "run_name", "step", "timestamp", "metrics"}
_RUNS = "SELECT DISTINCT CAST(run_name AS TEXT), {key} FROM metrics LIMIT ?"
_SELECT_ROWS = """
SELECT CAST(id AS INTEGER), CAST(timestamp AS TEXT), CAST(step AS INTEGER), metrics
FROM metrics WHERE {key} = ? AND id >= ? ORDER BY id
"""
_CONFIG = "SELECT config FROM configs WHERE {key} = ? ORDER BY id DESC LIMIT 1"
_NON_FINITE = {"NaN": math.nan, "Infinity": math.inf, "-Infinity": -math.inf}  # JSON has no such numbers
_MAX_STORED_RUNS = 10_000  # of one database
_ID_CHARACTERS = 8  # of a run's id that its path shows


def find(directory: Path, names: Sequence[str]) -> Iterator[Run]:
    """Yield the runs in the directory's databases."""
    for name in names:
        if name.endswith(sqlite.ENDINGS) and sqlite.is_database(path := directory / name):
            yield from _runs_in_database(path)


class Trackio(msgspec.Struct, frozen=True):
    """A run in a project's database: the rows with ``value`` in the column ``key``."""

    path: Path
    key: str  # run_id, or run_name in databases that have no ids yet
    value: str

    def poll(self, cursor: Cursor, limit: int) -> PollResult:
        """Return the points that were written since ``cursor``; see `sentinel.sources.base.Source`."""
        return sqlite.poll(
            self.path, cursor, lambda connection: self._read_database(connection, cursor, limit)
        )

    def _read_database(self, connection: sqlite3.Connection, cursor: Cursor, limit: int) -> PollResult:
        last: list[Any] = cursor.get("last", [0])  # the newest row's id, time and step
        restarted = cursor.get("restarted", False)

        def rows_from(row: int) -> sqlite3.Cursor:
            return connection.execute(_SELECT_ROWS.format(key=self.key), (self.value, row))

        rows = rows_from(last[0])
        if last[0] and (location := _row_location(rows.fetchone())) != last:
            if not location and _row_location(rows_from(0).fetchone()) == cursor.get("first"):
                return PollResult(cursor)  # an older copy, or one whose write-ahead log is not copied yet
            # another database under the same name
            cursor = {}
            last = [0]
            restarted = True
            rows = rows_from(0)
        first: list[Any] | None = cursor.get("first")
        records = Records(cursor.get("records", {}))
        broken = cursor.get("broken", 0)
        complaints: list[ReadIssue] = []
        more = False
        for row, time, step, text in rows:
            if more := len(records) >= limit:
                break
            last = [row, time, step]
            first = first or last
            if (metrics := _object(text)) is not None:
                spelled = {
                    n: _NON_FINITE[v] for n, v in metrics.items() if isinstance(v, str) and v in _NON_FINITE
                }
                records.add({**metrics, **spelled, "step": step, "wall_time": time}, row)
                continue
            broken += 1
            if problem := skipped("is not a JSON object", broken):
                complaints.append(ReadIssue(self.path, f"row {row} of metrics", problem))
        config = self._config(connection)
        state = {
            "first": first,
            "last": last,
            "records": records.memory(),
            "restarted": restarted and not records,
            "broken": broken,
            "settings": len(config),
        }
        chunks = [records.chunk("metrics", restarted)] if records else []
        news = config if len(config) != cursor.get("settings", 0) else {}
        return PollResult(state, chunks, complaints, more, news)

    def _config(self, connection: sqlite3.Connection) -> dict[str, Any]:
        if self.key not in sqlite.columns(connection, "configs"):
            return {}
        row = connection.execute(_CONFIG.format(key=self.key), (self.value,)).fetchone()
        return dict(flat((row and _object(row[0])) or {}))


def _runs_in_database(path: Path) -> list[Run]:
    """Return the runs of a database; none if it is not trackio's or cannot be read now."""

    def runs(connection: sqlite3.Connection) -> list[Run]:
        columns = sqlite.columns(connection, "metrics")
        if not columns >= _METRIC_COLUMNS:
            return []
        key = "run_id" if "run_id" in columns else "run_name"
        rows = connection.execute(_RUNS.format(key=key), (_MAX_STORED_RUNS,))
        runs_of_table = []
        for name, value in rows:
            run_name = str(name) if key == "run_name" else f"{name}-{str(value)[:_ID_CHARACTERS]}"
            runs_of_table.append(Run(path / run_name.replace("/", "_"), FORMAT, Trackio(path, key, value)))
        return runs_of_table

    try:
        return sqlite.read(path, runs)
    except (OSError, sqlite3.Error):
        return []


def _row_location(row: Sequence[Any] | None) -> list[Any]:
    """Return what distinguishes a row from others; empty if there is no row."""
    return list((row or ())[:3])


def _object(text: Any) -> dict[str, Any] | None:
    try:
        decoded = JSON.decode(
            text.decode() if isinstance(text, bytes) else text
        )  # trackio stores bytes or text
    except (TypeError, ValueError, RecursionError):
        return None
    return decoded if isinstance(decoded, dict) else None
