"""One small writer for each format, so that every source is held to the same rules."""

import csv
import json
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Protocol

import numpy as np
from tensorboard.compat.proto.event_pb2 import Event
from tensorboard.compat.proto.summary_pb2 import Summary
from tensorboard.summary.writer.event_file_writer import EventFileWriter

from tests.sources.tracker_writers import (
    CLOCK,
    MlflowDatabaseWriter,
    MlflowWriter,
    NeptuneWriter,
    SwanLabWriter,
    TrackioWriter,
    spelled,
)
from tests.sources.wandb.backend import Backend, StoredRun
from tests.sources.wandb.log_writer import WandbLog


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


class NumberedWriter:
    """Writes a document for each epoch, as AllenNLP does."""

    def start(self, directory):
        self.directory = directory
        self.count = len([*directory.glob("metrics_epoch_*.json")])

    def log(self, step, values):
        path = self.directory / f"metrics_epoch_{self.count:03}.json"
        path.write_text(json.dumps({"step": step, **values}))
        self.count += 1

    def close(self):
        pass


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


class NpzWriter:
    """As Stable-Baselines3 does, saves all arrays anew at each step."""

    def start(self, directory):
        self.path = directory / "metrics.npz"
        self.columns = {}
        if self.path.exists():
            with np.load(self.path) as arrays:
                self.columns = {name: array.tolist() for name, array in arrays.items()}

    def log(self, step, values):
        for name, value in {"step": step, **values}.items():
            self.columns.setdefault(name, []).append(value)
        np.savez(self.path, **self.columns)

    def close(self):
        pass


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


WRITERS: dict[str, type[Writer]] = {
    "console": ConsoleWriter,
    "csv": CsvWriter,
    "json": DocumentWriter,
    "json_numbered": NumberedWriter,
    "jsonl": JsonlWriter,
    "mlflow": MlflowWriter,
    "mlflow_database": MlflowDatabaseWriter,
    "neptune": NeptuneWriter,
    "npz": NpzWriter,
    "swanlab": SwanLabWriter,
    "tensorboard": TensorboardWriter,
    "trackio": TrackioWriter,
    "trainer_state": TrainerStateWriter,
    "trainer_state_checkpoints": CheckpointWriter,
    "wandb": WandbWriter,
}
"""What writes files, by the name of the format, or of one of its two ways."""

ONLINE = "wandb_online"  # the name of `WandbOnlineWriter`
