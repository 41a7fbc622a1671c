"""Whatever names, values, steps and times a log holds, its points fit the rest and its cursor can be kept."""

import contextlib
import json
import sqlite3
import tempfile
from pathlib import Path

import pytest
from hypothesis import example, given, note, settings
from hypothesis import strategies as st
from tensorboard.compat.proto.event_pb2 import Event
from tensorboard.compat.proto.summary_pb2 import Summary
from tensorboard.summary.writer.event_file_writer import EventFileWriter
from wandb.proto.wandb_internal_pb2 import Record

from sentinel.sources.readers.plain import flat
from tests.sources.reader import Reader
from tests.sources.tracker_writers import MlflowDatabaseWriter, MlflowWriter, TrackioWriter
from tests.sources.wandb.log_writer import WandbLog

pytestmark = pytest.mark.long

STEP_NAMES = ["step", "_step", "iter", "epoch", "time", "_timestamp", "timestamp", "wall_time", "global_step"]
HUGE = [
    10**400,
    -(10**19),
    2**63,
    2**64,
    1e308,
    -1e308,
    5e-324,
    1.5,
    float("inf"),
    float("nan"),
    253402300800,
]
NAMES = st.sampled_from([*STEP_NAMES, "loss", "\ud800", "a/\udfff", "_wandb", "", "_type"]) | st.text(
    st.characters(codec=None), max_size=5
)
SCALARS = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.sampled_from(HUGE)
    | st.sampled_from(
        ["12/500", f"{10**18 - 1}/{10**18 - 1}", "NaN", "1e400", "\ud800", "0001-01-01T00:00+23:59"]
    )
    | st.text(st.characters(codec=None), max_size=5)
)
VALUES = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(NAMES, inner, max_size=3),
    max_leaves=6,
)
ROWS = st.lists(st.dictionaries(NAMES, VALUES, max_size=5), min_size=1, max_size=6)
"""What a training may log at its steps, as one dictionary each."""

ODD = [
    {"step": step, "loss": 1.0, "\ud800": 1.0, "iter": step, "_step": step, "epoch": i}
    for i, step in enumerate(HUGE)
]
SOUND = [{"step": 1, "loss": 1.0}, {"step": 2, "loss": 2.0}]


def jsonl(directory, rows):
    (directory / "metrics.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))


def broken_utf8(directory, rows):
    text = "".join(json.dumps({**row, "\x00\x01": 1.0}, ensure_ascii=False) + "\n" for row in rows)
    data = text.encode("utf-8", "surrogatepass").replace(b"\\u0000\\u0001", b"\xff\xed\xa0\x80")
    (directory / "metrics.jsonl").write_bytes(data)


def document(directory, rows):
    (directory / "metrics.json").write_text(json.dumps([*SOUND, *rows]))


def trainer_state(directory, rows):
    state = {"log_history": [*SOUND, *rows], "max_steps": 10**400, "train_batch_size": 8}
    (directory / "trainer_state.json").write_text(json.dumps(state))


def console(directory, rows):
    lines = [text for row in [*SOUND, *rows] for text in (repr(row), json.dumps(row), f"step {row}")]
    (directory / "train.log").write_text("\n".join(lines) + "\n", errors="replace")


def csv(directory, rows):
    names = list(dict.fromkeys(name for row in [*SOUND, *rows] for name in row))
    lines = [names, *([row.get(name, "") for name in names] for row in [*SOUND, *rows])]
    text = "\n".join(",".join(f"{cell}".replace("\n", " ") for cell in line) for line in lines)
    (directory / "metrics.csv").write_bytes(text.encode("utf-8", "surrogatepass") + b"\n")


def wandb(directory, rows):
    log = WandbLog(directory / "run-1.wandb")
    for row in rows:
        record = Record()
        setting = Record()
        for name, value in row.items():
            shown = name.encode(errors="replace").decode()  # protobuf writes no others
            record.history.item.add(nested_key=[shown], value_json=json.dumps(value))
            setting.config.update.add(key=shown, value_json=json.dumps(value))
        log.write(setting)
        log.write(record)


def number_in(row, names, kind, default):
    """The first number under some names that a field of this kind can hold."""
    found = (row[name] for name in names if isinstance(row.get(name), (int, float)))
    return next((kind(x) for x in found if kind is float or (x == x and abs(x) < 2**63)), default)


def tensorboard(directory, rows):
    writer = EventFileWriter(str(directory))
    for row in rows:
        scalars = [
            Summary.Value(tag=name.encode(errors="replace").decode(), simple_value=1.0) for name in row
        ]
        step = number_in(row, ["step", "_step", "iter"], int, 0)
        time = number_in({k: v for k, v in row.items() if v != 10**400}, ["time", "timestamp"], float, 1e9)
        writer.add_event(Event(wall_time=time, step=step, summary=Summary(value=scalars)))
    writer.close()


def mlflow(directory, rows):
    writer = MlflowWriter()
    writer.start(directory)
    for i, row in enumerate([*SOUND, *rows]):
        for value in row.values():
            line = f"{i}{10**15} {value} {number_in(row, ['step'], int, i)}\n"
            with (writer.run / "metrics" / "loss").open("a", errors="replace") as file:
                file.write(line)


def columns(row):
    """What SQLite keeps in any column: a number of 64 bits, a float, text."""
    whole = {
        k: v
        for k, v in row.items()
        if isinstance(v, (int, float)) and (isinstance(v, float) or abs(v) < 2**63)
    }
    return whole.get("time", 1), whole.get("step", 1), whole.get("loss", 1.0)


def mlflow_database(directory, rows):
    writer = MlflowDatabaseWriter()
    writer.start(directory)
    names = "key, value, is_nan, timestamp, run_uuid, step"
    insert = f"INSERT OR IGNORE INTO metrics ({names}) VALUES (?, ?, 0, ?, ?, ?)"
    with writer.database:
        for row in rows:
            time, step, value = columns(row)
            for name in row:
                key = name.encode("utf-8", "surrogatepass")
                with contextlib.suppress(sqlite3.IntegrityError):  # NaN is null there
                    writer.database.execute(insert, (key, value, time, writer.run, step))
    writer.close()


def trackio(directory, rows):
    writer = TrackioWriter()
    writer.start(directory)
    insert = "INSERT INTO metrics (run_id, timestamp, run_name, step, metrics) VALUES ('1', ?, 'one', ?, ?)"
    with writer.database:
        for row in rows:
            time, step, _ = columns(row)
            if time == time and step == step:
                writer.database.execute(insert, (time, step, json.dumps(row)))
    writer.close()


LOGS = [
    *(jsonl, broken_utf8, document, trainer_state, console, csv, wandb, tensorboard),
    *(mlflow, mlflow_database, trackio),
]


@settings(max_examples=100, deadline=None)
@given(rows=ROWS, limit=st.integers(1, 20))
@example(rows=ODD, limit=3)
def test_any_values_give_points_that_fit(rows, limit):
    """Making up rows takes longer than reading them, so all formats log the same."""
    for log in LOGS:
        note(f"as {log.__name__}")
        with tempfile.TemporaryDirectory() as directory:
            log(Path(directory), rows)
            reader = Reader(Path(directory)).poll(limit)
            json.dumps(flat(reader.batch.config), ensure_ascii=False).encode()
            assert Reader(Path(directory)).poll(1000).points == reader.points
