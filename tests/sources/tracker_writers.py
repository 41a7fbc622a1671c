"""Writers of experiment trackers' logs and databases, for `tests.sources.writers`."""

import json
import math
import re
import sqlite3
import sys
import time
from datetime import UTC, datetime
from decimal import Decimal
from itertools import count
from pathlib import Path

import polars as pl

from sentinel.sources.swanlab.messages import record_type
from tests.sources.wandb.log_writer import framed

MLFLOW_SCHEMA = Path(__file__).parent / "fixtures" / "mlflow" / "mlflow.sql"

NEPTUNE_SCHEMA = {
    **dict.fromkeys(["project_id", "run_id", "attribute_path", "attribute_type"], pl.String()),
    "step": pl.Decimal(18, 6),
    "timestamp": pl.Datetime("ms", "UTC"),
    "int_value": pl.Int64(),
    "float_value": pl.Float64(),
    "string_value": pl.String(),
    "bool_value": pl.Boolean(),
    "datetime_value": pl.Datetime("ms", "UTC"),
    "string_set_value": pl.List(pl.String()),
    "file_value": pl.Struct({"path": pl.String()}),
    "histogram_value": pl.Struct(
        {"type": pl.String(), "edges": pl.List(pl.Float64()), "values": pl.List(pl.Float64())}
    ),
}
"""The columns that neptune-exporter writes (`model.py`)."""

CLOCK = count(int(time.time()))
"""Seconds since the epoch, of which none comes twice: two trainings never log at the same time."""


class MlflowWriter:
    """As MLflow's file store does on `log_metric`."""

    def start(self, directory):
        self.run = directory / "mlruns" / "0" / "0123456789abcdef"
        (self.run / "metrics").mkdir(parents=True, exist_ok=True)
        self.status(1)

    def log(self, step, values):
        stamp = next(CLOCK) * 1000
        for name, value in values.items():
            path = self.run / "metrics" / name
            path.parent.mkdir(parents=True, exist_ok=True)
            with path.open("a", encoding="utf-8") as file:
                file.write(f"{(stamp := stamp + 1)} {value} {step}\n")

    def close(self):
        self.status(3)

    def status(self, number):
        (self.run / "meta.yaml").write_text(f"run_id: 0123456789abcdef\nstatus: {number}\n")


def connected(path: Path) -> sqlite3.Connection:
    """A database that waits for no disk, as only a loss of power would tell."""
    database = sqlite3.connect(path)
    database.execute("PRAGMA synchronous = OFF")
    return database


class MlflowDatabaseWriter:
    """As MLflow's SQLite store does on `log_metric`."""

    run = "0123456789abcdef"

    def start(self, directory):
        path = directory / "mlflow.db"
        is_new = not path.exists()
        self.database = connected(path)
        if is_new:
            for table in re.findall(r"CREATE TABLE .*?\);", MLFLOW_SCHEMA.read_text(), re.DOTALL):
                self.database.execute(table)
            insert = "INSERT INTO runs (run_uuid, status, lifecycle_stage) VALUES (?, 'RUNNING', 'active')"
            with self.database:
                self.database.execute(insert, (self.run,))

    def log(self, step, values):
        stamp = next(CLOCK) * 1000
        rows = [
            (name, *self.number(value), stamp + i, self.run, step)
            for i, (name, value) in enumerate(values.items())
        ]
        insert = (
            "INSERT INTO metrics (key, value, is_nan, timestamp, run_uuid, step) VALUES (?, ?, ?, ?, ?, ?)"
        )
        with self.database:
            self.database.executemany(insert, rows)

    def number(self, value):
        if math.isnan(value):
            return 0.0, True
        return (math.copysign(sys.float_info.max, value) if math.isinf(value) else value), False

    def close(self):
        with self.database:
            self.database.execute("UPDATE runs SET status = 'FINISHED'")
        self.database.close()


class TrackioWriter:
    run = "0123456789abcdef"

    def start(self, directory):
        self.database = connected(directory / "demo.db")
        self.database.execute("PRAGMA journal_mode = WAL")
        self.database.execute(
            "CREATE TABLE IF NOT EXISTS metrics (id INTEGER PRIMARY KEY AUTOINCREMENT, run_id TEXT NOT NULL, "
            "timestamp TEXT NOT NULL, run_name TEXT NOT NULL, step INTEGER NOT NULL, metrics TEXT NOT NULL)"
        )

    def log(self, step, values):
        stamp = datetime.fromtimestamp(next(CLOCK), UTC).isoformat()
        row = (self.run, stamp, "one", step, json.dumps(spelled(values)))
        with self.database:
            self.database.execute(
                "INSERT INTO metrics (run_id, timestamp, run_name, step, metrics) VALUES (?, ?, ?, ?, ?)", row
            )

    def close(self):
        self.database.close()


class NeptuneWriter:
    """Exports all anew at each step, as if somebody had called neptune-exporter again."""

    def start(self, directory):
        self.path = directory / "RUN-1-0123456789abcdef_part_0.parquet"
        self.table = pl.read_parquet(self.path) if self.path.exists() else pl.DataFrame(schema=NEPTUNE_SCHEMA)

    def log(self, step, values):
        time = next(CLOCK) * 1000
        rows = []
        for name, value in values.items():
            row = {"attribute_path": name, "attribute_type": "float_series", "float_value": value}
            rows.append({**row, "run_id": "RUN-1", "step": Decimal(step), "timestamp": time})
        self.table = self.table.vstack(pl.DataFrame(rows, NEPTUNE_SCHEMA))
        self.table.write_parquet(self.path)

    def close(self):
        pass


class SwanLabWriter:
    """As SwanLab does since 0.8, without its buffer."""

    def start(self, directory):
        self.path = directory / f"run-{len(list(directory.glob('run-*.swanlab'))):08}.swanlab"
        self.path.write_bytes(b":SWL\xd6\xe1\x02")

    def log(self, step, values):
        for name, value in values.items():
            record = record_type()()
            record.scalar.key = name
            record.scalar.step = step
            record.scalar.value.number = value
            record.scalar.timestamp.seconds = next(CLOCK)
            self.write(record)

    def close(self):
        pass

    def write(self, record):
        with self.path.open("ab") as file:
            file.write(framed(record.SerializeToString(), file.tell()))


def spelled(values):
    """The values with text for what JSON has no numbers for."""
    names = {math.inf: "Infinity", -math.inf: "-Infinity"}
    return {name: "NaN" if value != value else names.get(value, value) for name, value in values.items()}
