"""A run in MLflow's SQLite store, whose points are one stream in the order in which they were written."""

import math
import re
import sqlite3
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from sentinel.sources.base import Chunk, Cursor, Ending, EndKind, PollResult
from sentinel.sources.identity import NO_LABEL, Label
from sentinel.sources.readers import sqlite
from sentinel.sources.readers.plain import plain_times
from sentinel.sources.readers.records import NUMBER

_END_OF_STATUS = {"FINISHED": EndKind.FINISHED, "FAILED": EndKind.CRASHED, "KILLED": EndKind.CRASHED}
_INFINITY = sys.float_info.max  # MLflow writes it for an infinity

_POINTS = """
SELECT rowid, CAST(key AS TEXT), COALESCE(CAST(timestamp AS INTEGER), 0), COALESCE(CAST(step AS INTEGER), 0),
    CAST(value AS REAL), CAST(is_nan AS INTEGER)
FROM metrics WHERE run_uuid = ? AND rowid >= ? ORDER BY rowid LIMIT ?
"""
_RUN_NAME_QUERY = "SELECT CAST(name AS TEXT), experiment_id FROM runs WHERE run_uuid = ?"
_PROJECT = "SELECT CAST(name AS TEXT) FROM experiments WHERE experiment_id = ?"


def ending(status: str) -> Ending | None:
    """Return how a run with this status of MLflow ended; None while it goes on."""
    outcome = _END_OF_STATUS.get(status)
    return Ending(outcome, f"MLflow status {status}") if outcome else None


def settings(params: Iterable[tuple[str, Any]]) -> dict[str, Any]:
    """Return MLflow's params. All of them are texts; those that are numbers become numbers."""
    return {str(name): _mlflow_parameter(str(value)) for name, value in params}


def _mlflow_parameter(text: str) -> str | float:
    if re.fullmatch(r"[+-]?\d{1,18}", text, re.ASCII):
        return int(text)
    return float(text) if NUMBER.fullmatch(text) else text


class SqliteRun(msgspec.Struct, frozen=True):
    """A run in a SQLite store."""

    path: Path
    run: str

    def poll(self, cursor: Cursor, limit: int) -> PollResult:
        """Return the points that were written since ``cursor``; see `sentinel.sources.base.Source`."""
        return sqlite.poll(
            self.path, cursor, lambda connection: self._read_metrics(connection, cursor, limit)
        )

    def _read_metrics(self, connection: sqlite3.Connection, cursor: Cursor, limit: int) -> PollResult:
        last_point: list[Any] = cursor.get("last", [0])  # the newest point's row, name, time and step
        restarted = cursor.get("restarted", False)
        points = connection.execute(_POINTS, (self.run, last_point[0], limit + 1)).fetchall()
        if last_point[0] and points and list(points[0][:4]) == last_point:
            points = points[1:]
        elif last_point[0]:
            shorter = not points
            points = connection.execute(_POINTS, (self.run, 0, limit + 1)).fetchall()
            if shorter and points and list(points[0][:4]) == cursor.get("first"):
                return PollResult(cursor)  # an older copy, or one whose write-ahead log is not copied yet
            # Another database has the same name, or its rows were numbered again.
            cursor = {}
            last_point = [0]
            restarted = True
        params = connection.execute(
            "SELECT key, value FROM params WHERE run_uuid = ?", (self.run,)
        ).fetchall()
        status = connection.execute("SELECT status FROM runs WHERE run_uuid = ?", (self.run,)).fetchone()
        more = len(points) >= limit
        status_before = cursor.get("status", "")
        now = status_before if more or status is None else str(status[0])
        state = {
            "first": cursor.get("first") or (list(points[0][:4]) if points else None),
            "last": list(points[-1][:4]) if points else last_point,
            "restarted": restarted and not points,
            "settings": len(params),
            "status": now,
        }
        return PollResult(
            state,
            [_chunk_of_metrics(points, restarted)] if points else [],
            more=more,
            config=settings(params) if len(params) != cursor.get("settings", 0) else {},
            ending=ending(now) if now != status_before else None,
            label=NO_LABEL if "last" in cursor else _run_label(connection, self.run),
        )


def _run_label(connection: sqlite3.Connection, run: str) -> Label:
    """Return the names of a run and of its experiment, as far as the database has them."""
    if not sqlite.columns(connection, "runs") >= {"name", "experiment_id"}:
        return NO_LABEL
    name, experiment = connection.execute(_RUN_NAME_QUERY, (run,)).fetchone() or ("", None)
    if not sqlite.columns(connection, "experiments") >= {"name", "experiment_id"}:
        return Label.of(name, "")
    (project,) = connection.execute(_PROJECT, (experiment,)).fetchone() or ("",)
    return Label.of(name, project)


def _chunk_of_metrics(points: Sequence[Sequence[Any]], restarted: bool) -> Chunk:
    _, keys, times, steps, values, nans = zip(*points, strict=True)
    tags = {key: i for i, key in enumerate(dict.fromkeys(keys))}
    value = np.array(values, dtype=np.float64)
    value = np.where(np.abs(value) == _INFINITY, np.copysign(math.inf, value), value)
    value[np.array(nans, dtype=bool)] = math.nan
    return Chunk(
        "metrics",
        list(tags),
        np.array([tags[key] for key in keys], dtype=np.uint32),
        np.array(steps, dtype=np.int64),
        plain_times(np.array(times, dtype=np.float64) / 1e3),
        value,
        restarted,
    )
