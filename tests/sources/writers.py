"""One small writer for each format, so that every source is held to the same rules."""

import csv
import json
import math
import sqlite3
from collections.abc import Mapping
from pathlib import Path
from typing import Protocol

from tensorboard.compat.proto.event_pb2 import Event
from tensorboard.compat.proto.summary_pb2 import Summary
from tensorboard.summary.writer.event_file_writer import EventFileWriter

from tests.sources.wandb_log import WandbLog


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
        self.writer.add_event(Event(wall_time=1.7e9 + step, step=step, summary=Summary(value=scalars)))
        self.writer.flush()

    def close(self):
        self.writer.close()


class WandbWriter:
    def start(self, directory):
        runs = len(list(directory.glob("run-*.wandb")))
        self.log_file = WandbLog(directory / f"run-{runs:08}.wandb")
        self.calls = 0

    def log(self, step, values):
        row = {**values, "trainer/global_step": step, "_step": self.calls, "_timestamp": 1.7e9 + step}
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

    def start(self, directory):
        self.path = directory / self.name
        self.entries = self.entries_of(json.loads(self.path.read_text())) if self.path.exists() else []

    def log(self, step, values):
        self.entries.append({"step": step, **values})
        self.path.write_text(json.dumps(self.document(), indent=2))

    def close(self):
        pass

    def document(self):
        return self.entries

    def entries_of(self, document):
        return document


class TrainerStateWriter(DocumentWriter):
    name = "trainer_state.json"

    def document(self):
        return {"global_step": self.entries[-1]["step"], "log_history": self.entries, "max_steps": 0}

    def entries_of(self, document):
        return document["log_history"]


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
        (self.run / "meta.yaml").write_text("run_id: 0123456789abcdef\nstatus: 1\n")
        self.time = 1_700_000_000_000 + sum(path.is_file() for path in self.run.rglob("*")) * 1000

    def log(self, step, values):
        for name, value in values.items():
            self.time += 1
            path = self.run / "metrics" / name
            path.parent.mkdir(parents=True, exist_ok=True)
            with path.open("a", encoding="utf-8") as file:
                file.write(f"{self.time} {value} {step}\n")

    def close(self):
        (self.run / "meta.yaml").write_text("run_id: 0123456789abcdef\nstatus: 3\n")


class TrackioWriter:
    def start(self, directory):
        self.database = sqlite3.connect(directory / "demo.db")
        self.database.execute("PRAGMA journal_mode = WAL")
        self.database.execute(
            "CREATE TABLE IF NOT EXISTS metrics (id INTEGER PRIMARY KEY AUTOINCREMENT, run_id TEXT NOT NULL, "
            "timestamp TEXT NOT NULL, run_name TEXT NOT NULL, step INTEGER NOT NULL, metrics TEXT NOT NULL)"
        )

    def log(self, step, values):
        spelled = {math.inf: "Infinity", -math.inf: "-Infinity"}
        safe = {
            name: "NaN" if value != value else spelled.get(value, value) for name, value in values.items()
        }
        row = ("0123456789abcdef", f"2026-01-01T00:00:{step:02}+00:00", "one", step, json.dumps(safe))
        with self.database:
            self.database.execute(
                "INSERT INTO metrics (run_id, timestamp, run_name, step, metrics) VALUES (?, ?, ?, ?, ?)", row
            )

    def close(self):
        self.database.close()


WRITERS: dict[str, type[Writer]] = {
    "console": ConsoleWriter,
    "csv": CsvWriter,
    "json": DocumentWriter,
    "jsonl": JsonlWriter,
    "mlflow": MlflowWriter,
    "tensorboard": TensorboardWriter,
    "trackio": TrackioWriter,
    "trainer_state": TrainerStateWriter,
    "wandb": WandbWriter,
}

DOCUMENTS = {"json", "trainer_state"}
"""Formats whose files are one JSON document: what is broken is lost with all the rest."""

REWRITTEN = {"csv", *DOCUMENTS}
"""Formats whose files are written anew at times: what was read before and comes again is not new."""

TEXTS = {"console"}
"""Formats that are found by what they hold, at the second record, and in which all else is plain text."""

WHOLES = {"mlflow", "trackio"}
"""Formats whose bytes cannot be played back: directories of many files, and databases."""

PLAIN_NAMES = {"mlflow"}
"""Formats that allow only names of which a file can be made."""
