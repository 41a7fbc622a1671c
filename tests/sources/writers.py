"""One small writer for each format, so that every source is held to the same rules."""

import json
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


WRITERS: dict[str, type[Writer]] = {
    "jsonl": JsonlWriter,
    "tensorboard": TensorboardWriter,
    "wandb": WandbWriter,
}
