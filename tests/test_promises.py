"""The promises, attacked: one run, one file, one state row, one receiver is poisoned.

The page of the promises (`deploy/site/docs/reference/promises.md`) says which other tests hold each of them.
"""

import json
import os
import pickle
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest

from sentinel.detectors.discovery import all_detectors
from sentinel.pipeline import Pipeline
from sentinel.sources.discovery import discover
from sentinel.storage.store import Store
from tests.patience import PATIENCE
from tests.sinks.receiver import Receiver, status

pytestmark = pytest.mark.slow

KL = ["firing: kl-blowup"]


def rows(steps, kl=9.0):
    return "".join(json.dumps({"step": step, "kl": kl, "loss": 1.0}) + "\n" for step in steps).encode()


class Marks:
    """Leaves a mark where it is unpickled."""

    def __init__(self, place):
        self.place = place

    def __reduce__(self):
        return os.mkdir, (self.place,)


def text(content):
    return lambda place: place.write_bytes(content)


POISONS = {
    "half a surrogate pair in a name": ("x.jsonl", text(rows(range(40)) + b'{"step": 41, "\\ud800": 1}\n')),
    "a step beyond all bounds": (
        "x.jsonl",
        text(b'{"_step": 1e400, "loss": 1}\n{"_step": 1e308, "loss": 1}\n'),
    ),
    "bytes that are no text": ("x.jsonl", text(bytes(range(256)) * 100)),
    "a line without an end": ("x.jsonl", text(b'{"step": 1, "loss": ' + b"1" * 10**6)),
    "a torn event file": ("events.out.tfevents.1.host", text(b"\x18" + bytes(30))),
    "a torn W&B file": ("run-x.wandb", text(b":W&B\x00\x00\x00\x00" + bytes(range(99)))),
    "a link that cannot be read": ("link", lambda place: place.symlink_to("/proc/2/exe")),
    "a link to itself": ("x.jsonl", lambda place: place.symlink_to(place)),
    "a pipe that nobody writes": ("x.jsonl", os.mkfifo),
    "a directory with the name of a log": ("x.jsonl", Path.mkdir),
    "a name that clears the screen": ("\x1b[2J\x1b]0;x\x07.jsonl", text(rows(range(40)))),
    "a name that is no text": ("\udcff.jsonl", text(rows(range(40)))),
    "a database that is none": ("mlflow.db", text(b"SQLite format 3\x00" + bytes(500))),
    "a pickle": ("state.pkl", lambda place: place.write_bytes(pickle.dumps(Marks(place.parent / "mark")))),
    "settings that run a command": (
        "config.yaml",
        text(b"!!python/object/apply:os.system ['touch mark']\nlr: 1\n"),
    ),
}


def contents(place):
    """Everything that lies below a place, and when it was written."""
    found = {}
    for path in sorted(place.rglob("*")):
        status = path.lstat()
        data = path.read_bytes() if path.is_file() else b""
        found[str(path)] = status.st_mtime_ns, status.st_mode, data
    return found


def sentinel(place, *arguments, environment=()):
    done = subprocess.run(
        [sys.executable, "-m", "sentinel", *arguments],
        cwd=place,
        env={**os.environ, **dict(environment)},
        capture_output=True,
        check=False,
        timeout=PATIENCE,
    )
    assert b"Traceback" not in done.stderr, done.stderr
    assert b"\x1b[2J" not in done.stdout + done.stderr, "a name from a run reaches no terminal as it is"
    return done


@pytest.fixture
def place(tmp_path):
    (tmp_path / "runs").mkdir()
    (tmp_path / "runs" / "good.jsonl").write_bytes(rows(range(60)))
    (tmp_path / "sentinel.toml").write_text(
        'paths = ["runs"]\nstate_dir = "state"\n[signals]\nkl = "kl"\n[[sinks]]\ntype = "terminal"\n'
    )
    return tmp_path


def sent(place):
    with Store(place / "state") as store:
        told = [one for one in store.decisions(1000) if one.sent and one.run.endswith("good.jsonl")]
        return [f"{one.event}: {one.detector}" for one in told if one.detector == "kl-blowup"]


@pytest.mark.long  # each starts real processes
def test_poison_of_every_kind_stops_no_other_run_and_nothing_is_written_or_run(place):
    for number, (name, make) in enumerate(POISONS.values()):
        (place / "runs" / str(number)).mkdir()
        make(place / "runs" / str(number) / name)
    before = contents(place / "runs")
    assert sentinel(place, "watch", "--once").returncode == 0
    assert sent(place) == KL
    assert sentinel(place, "watch", "--once").returncode == 0
    assert sent(place) == KL, "and it is told once"
    assert sentinel(place, "status").returncode == 0
    assert sentinel(place, "runs", "runs").returncode == 0
    shown = sentinel(place, "replay", "runs")
    assert shown.returncode == 0
    assert b"kl-blowup" in shown.stdout
    replayed = json.loads(sentinel(place, "replay", "runs", "--format", "json").stdout)["runs"]
    with Store(place / "state") as store:
        recorded = {one.id for one in store.incidents() if one.detector == "kl-blowup"}
    found = [one for run in replayed for one in run["incidents"]]  # some only because the log ends
    assert {one["id"] for one in found if one["detector"] == "kl-blowup"} == recorded
    assert contents(place / "runs") == before


@pytest.mark.parametrize("poison", POISONS)
def test_each_poison_alone_is_found_harmless(tmp_path, poison):
    (tmp_path / "good.jsonl").write_bytes(rows(range(60)))
    name, make = POISONS[poison]
    make(tmp_path / name)
    failures = []
    pipeline = Pipeline([all_detectors()["kl-blowup"]], {}, {"kl": "kl"}, lambda *what: failures.append(what))
    found = discover([tmp_path])
    run_pipelines = [pipeline.track(run, run.id) for run in found.runs]
    told = []
    for _ in range(3):
        for advance in pipeline.advance(run_pipelines):
            told += [change.incident.run for change in advance.changes if change.event == "firing"]
            assert advance.failure is None
            advance.run_pipeline.dump()
    assert [run for run in told if run.endswith("good.jsonl")] == [f"jsonl:{tmp_path / 'good.jsonl'}"]
    assert failures == []
    assert not (tmp_path / "mark").exists()


@pytest.mark.long  # starts real processes
def test_a_poisoned_row_and_a_receiver_that_refuses_delay_no_other(place):
    (place / "runs" / "bad.jsonl").write_bytes(rows(range(50)))
    with Receiver() as refusing, Receiver() as taking:
        refusing.default = status(404)
        with (place / "sentinel.toml").open("a") as file:
            for name, receiver in (("refuses", refusing), ("takes", taking)):
                file.write(f'[[sinks]]\ntype = "webhook"\nname = "{name}"\nurl = "{receiver.url}"\n')
        sentinel(place, "watch", "--once")
        with closing(sqlite3.connect(place / "state" / "sentinel.sqlite")) as connection, connection:
            connection.execute("UPDATE runs SET state = x'c1' WHERE id LIKE '%bad.jsonl'")
            connection.execute("UPDATE incidents SET incident = '{' WHERE run LIKE '%bad.jsonl'")
        assert sentinel(place, "watch", "--once").returncode == 0
        bodies = [json.loads(request.body) for request in taking.received]
        told = [one for body in bodies for one in body.get("notifications", [body])]
        names = [one["run"]["run"] for one in told if one["incident"]["detector"] == "kl-blowup"]
        assert sorted(names) == ["bad.jsonl", "good.jsonl"], "once, although one run was read again"
        assert sentinel(place, "status").returncode == 0


@pytest.mark.long
def test_what_is_kept_of_a_run_does_not_grow_with_its_length(tmp_path):
    log = tmp_path / "a.jsonl"
    pipeline = Pipeline(all_detectors().values(), {}, {"kl": "kl"}, lambda *what: pytest.fail(str(what)))
    sizes = []
    run_pipeline = None
    for begin, end in (
        (0, 4_000),
        (4_000, 8_000),
        (8_000, 16_000),
    ):  # doubled, as buckets fill up and are halved
        with log.open("ab") as file:
            file.write(rows(range(begin, end), kl=0.1))
        if run_pipeline is None:
            (run,) = discover([log]).runs
            run_pipeline = pipeline.track(run, "a")
        while pipeline.advance([run_pipeline])[0].more:
            pass
        sizes.append(len(run_pipeline.dump()))
    assert run_pipeline.log.metadata.points == 32_000
    assert sizes[2] < 1.02 * sizes[1]
