"""One small writer for each format, so that every source is held to the same rules."""

import csv
import json
import math
import re
import shutil
import sqlite3
import sys
import time
from collections.abc import Mapping
from datetime import UTC, datetime
from itertools import count
from pathlib import Path
from typing import Protocol

from tensorboard.compat.proto.event_pb2 import Event
from tensorboard.compat.proto.summary_pb2 import Summary
from tensorboard.summary.writer.event_file_writer import EventFileWriter

from sentinel.sources.swanlab.messages import record_type
from tests.sources.wandb.backend import Backend, StoredRun
from tests.sources.wandb.log_writer import WandbLog, framed

MLFLOW_SCHEMA = Path(__file__).parent / "fixtures" / "mlflow" / "mlflow.sql"

CLOCK = count(int(time.time()))
"""Seconds since the epoch, of which none comes twice: two trainings never log at the same time."""


class Writer(Protocol):
    """Writes one run into a directory the way a training library does; what was logged is on disk."""

    def start(self, directory: Path) -> None:
        """Begin, or go on after a restart."""

    def log(self, step: int, values: Mapping[str, float]) -> None: ...

    def close(self) -> None: ...


class JsonlWriter:
    def start(self, directory):
        self.path = directory / "metrics.jsonl"
        self.path.touch()

    def log(self, step, values):
        with self.path.open("a", encoding="utf-8") as file:
            file.write(json.dumps({"step": step, **values}) + "\n")

    def close(self):
        pass


class TensorboardWriter:
    def start(self, directory):
        self.writer = EventFileWriter(str(directory))

    def log(self, step, values):
        scalars = [Summary.Value(tag=tag, simple_value=value) for tag, value in values.items()]
        self.writer.add_event(Event(wall_time=next(CLOCK), step=step, summary=Summary(value=scalars)))
        self.writer.flush()

    def close(self):
        self.writer.close()


class WandbWriter:
    def start(self, directory):
        runs = len(list(directory.glob("run-*.wandb")))
        self.log_file = WandbLog(directory / f"run-{runs:08}.wandb")
        self.calls = 0

    def log(self, step, values):
        row = {**values, "trainer/global_step": step, "_step": self.calls, "_timestamp": next(CLOCK)}
        self.log_file.history(row)
        self.calls += 1

    def close(self):
        pass


class CsvWriter:
    """As Lightning's CSVLogger does, writes the file anew when a metric appears."""

    def start(self, directory):
        self.path = directory / "metrics.csv"
        self.rows = []
        if self.path.exists():
            with self.path.open(encoding="utf-8", newline="") as file:
                self.rows = list(csv.DictReader(file))
        self.names = list(self.rows[0]) if self.rows else []

    def log(self, step, values):
        row = {"step": step, **values}
        self.rows.append(row)
        known = row.keys() <= set(self.names)
        self.names += [name for name in row if name not in self.names]
        with self.path.open("a" if known else "w", encoding="utf-8", newline="") as file:
            writer = csv.DictWriter(file, self.names)
            if not known:
                writer.writeheader()
            writer.writerows([row] if known else self.rows)

    def close(self):
        pass


class DocumentWriter:
    """Writes a list of entries anew at each step."""

    name = "metrics.json"
    text = "[\n{entries}\n]"

    def start(self, directory):
        self.path = directory / self.name
        entries = self.entries_of(json.loads(self.path.read_text())) if self.path.exists() else []
        self.entries = [json.dumps(entry) for entry in entries]

    def log(self, step, values):
        self.entries.append(json.dumps({"step": step, **values}))
        self.path.write_text(self.text.format(step=step, entries=",\n".join(self.entries)))

    def close(self):
        pass

    def entries_of(self, document):
        return document


class TrainerStateWriter(DocumentWriter):
    name = "trainer_state.json"
    text = '{{\n"global_step": {step},\n"log_history": [\n{entries}\n],\n"max_steps": 0\n}}'

    def entries_of(self, document):
        return document["log_history"]


class CheckpointWriter(TrainerStateWriter):
    """As HF's Trainer does, saves the state with each checkpoint and keeps the last two of these."""

    def start(self, directory):
        self.directory = directory
        self.saved = sorted(directory.glob("checkpoint-*"), key=lambda folder: folder.stat().st_mtime_ns)
        super().start(self.saved[-1] if self.saved else directory)

    def log(self, step, values):
        folder = self.directory / f"checkpoint-{step}"
        folder.mkdir(exist_ok=True)
        self.path = folder / self.name
        super().log(step, values)
        self.saved = [*(other for other in self.saved if other != folder), folder]
        for other in self.saved[:-2]:
            shutil.rmtree(other)
        self.saved = self.saved[-2:]


class ConsoleWriter:
    """Prints dictionaries, as HF's Trainer does, of at most so many numbers."""

    most = 100

    def start(self, directory):
        self.path = directory / "train.log"
        self.path.touch()

    def log(self, step, values):
        items = list(values.items())
        with self.path.open("a", encoding="utf-8") as file:
            for start in range(0, len(items), self.most):
                print({"step": step, **dict(items[start : start + self.most])}, file=file)

    def close(self):
        pass


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


class MlflowDatabaseWriter:
    """As MLflow's SQLite store does on `log_metric`."""

    run = "0123456789abcdef"

    def start(self, directory):
        path = directory / "mlflow.db"
        is_new = not path.exists()
        self.database = sqlite3.connect(path)
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
        self.database = sqlite3.connect(directory / "demo.db")
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


class SwanLabWriter:
    """As SwanLab does since 0.8, without its buffer."""

    def start(self, directory):
        self.path = directory / f"run-{len(list(directory.glob('run-*.swanlab'))):08}.swanlab"
        self.path.write_bytes(b":SWL\xd6\xe1\x02")

    def log(self, step, values):
        for name, value in values.items():
            record = record_type()()
            record.scalar.key, record.scalar.step, record.scalar.value.number = name, step, value
            record.scalar.timestamp.seconds = next(CLOCK)
            self.write(record)

    def close(self):
        pass

    def write(self, record):
        with self.path.open("ab") as file:
            file.write(framed(record.SerializeToString(), file.tell()))


class WandbOnlineWriter:
    """Logs to a server; each start is a run of its own."""

    def __init__(self, backend: Backend):
        self.backend = backend

    def start(self, _):
        self.run = self.backend.runs[f"run{len(self.backend.runs)}"] = StoredRun()

    def log(self, step, values):
        own = {"trainer/global_step": step, "_step": len(self.run.rows), "_timestamp": next(CLOCK)}
        self.run.rows.append({**spelled(values), **own})

    def close(self):
        self.run.state = "finished"


def spelled(values):
    """The values with text for what JSON has no numbers for."""
    names = {math.inf: "Infinity", -math.inf: "-Infinity"}
    return {name: "NaN" if value != value else names.get(value, value) for name, value in values.items()}


WRITERS: dict[str, type[Writer]] = {
    "console": ConsoleWriter,
    "csv": CsvWriter,
    "json": DocumentWriter,
    "jsonl": JsonlWriter,
    "mlflow": MlflowWriter,
    "mlflow_database": MlflowDatabaseWriter,
    "swanlab": SwanLabWriter,
    "tensorboard": TensorboardWriter,
    "trackio": TrackioWriter,
    "trainer_state": TrainerStateWriter,
    "trainer_state_checkpoints": CheckpointWriter,
    "wandb": WandbWriter,
}
"""What writes files, by the name of the format, or of one of its two ways."""

ONLINE = "wandb_online"  # the name of `WandbOnlineWriter`
