"""A state that is damaged or of another schema is kept aside, and a new one begins."""

import json
import random
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from sentinel.storage.database import SCHEMA, STATE_FILE
from sentinel.storage.store import Store
from sentinel.watch.state_recovery import sound_store

NOW = 1.7e9


def broken_run(place: Path) -> Path:
    """A log whose loss is NaN from step 50 on."""
    rows = ({"step": step, "time": NOW + step, "loss": 1.0 if step < 50 else None} for step in range(60))
    log = place / "run.jsonl"
    log.write_text("".join(json.dumps(row).replace("null", "NaN") + "\n" for row in rows))
    return log


@pytest.mark.long  # many watches
@pytest.mark.parametrize("seed", range(10))
def test_overwritten_bytes_cost_the_state_and_not_the_watch(sentinel, tmp_path, seed):
    arguments = ("watch", "--once", str(broken_run(tmp_path)), "--state-dir", str(tmp_path / "state"))
    assert sentinel(*arguments).status == 0
    file = tmp_path / "state" / STATE_FILE
    dice = random.Random(seed)
    data = bytearray(file.read_bytes())
    for _ in range(100):
        data[dice.randrange(100, len(data))] = dice.randrange(256)
    file.write_bytes(data)
    ended = sentinel(*arguments)
    assert ended.status == 0
    kept = [path.name for path in file.parent.iterdir() if ".corrupt-" in path.name]
    assert ended.err.count("the state was damaged") == bool(kept)
    with Store(file.parent) as store:
        assert {one.detector for one in store.incidents(open_only=True)} >= {"non-finite-metric"} or not kept


@pytest.mark.slow
def test_a_state_that_proves_damaged_in_use_is_kept_as_well(sentinel, tmp_path):
    log = broken_run(tmp_path)
    Store(tmp_path / "state").close()
    with sqlite3.connect(tmp_path / "state" / STATE_FILE) as database:
        database.execute("DROP TABLE runs")
    database.close()
    ended = sentinel("watch", "--once", str(log), "--state-dir", str(tmp_path / "state"))
    assert (ended.status, ended.err.count("the state was damaged")) == (0, 1)
    with Store(tmp_path / "state") as store:
        assert "non-finite-metric" in {incident.detector for incident in store.incidents(open_only=True)}


def test_a_damaged_state_is_kept_and_said_once(tmp_path):
    Store(tmp_path).close()
    file = tmp_path / STATE_FILE
    said = []
    damaged = file.read_bytes()[:100] + bytes(4000)
    file.write_bytes(damaged)
    with sound_store(tmp_path, NOW, said.append) as store:
        assert store.runs() == []
    (line,) = said
    assert "sentinel.sqlite.corrupt-20231114T221320Z" in line
    assert (tmp_path / "sentinel.sqlite.corrupt-20231114T221320Z").read_bytes() == damaged
    sound_store(tmp_path, NOW, said.append).close()
    assert len(said) == 1


@pytest.mark.parametrize("schema", [7, 9], ids=["older", "newer"])
def test_a_state_of_another_schema_is_kept_and_said_once(tmp_path, monkeypatch, schema):
    monkeypatch.setattr("sentinel.storage.database.SCHEMA", schema)
    with Store(tmp_path) as store:
        store.set_health({"state": "old"})
    monkeypatch.setattr("sentinel.storage.database.SCHEMA", 8)
    said = []
    with sound_store(tmp_path, NOW, said.append) as store:
        assert store.health() == {}
        store.set_health({"state": "new"})
    file = tmp_path / STATE_FILE
    aside = f"{file}.other-schema-20231114T221320Z"
    assert said == [
        f"the state is of another version ({file}: has schema {schema}, and this sentinel has schema 8). "
        f"It is kept as {aside}. All logs are read again, so what was open may be told once more, "
        "and silences are gone"
    ]
    with closing(sqlite3.connect(aside)) as database:
        assert database.execute("SELECT value FROM health").fetchall() == [('"old"',)]
    with sound_store(tmp_path, NOW, said.append) as store:
        assert store.health() == {"state": "new"}
    assert len(said) == 1


@pytest.mark.slow
def test_a_watch_goes_on_with_a_new_state_where_another_version_left_one(sentinel, tmp_path):
    log = broken_run(tmp_path)
    Store(tmp_path / "state").close()
    with closing(sqlite3.connect(tmp_path / "state" / STATE_FILE)) as database:
        database.execute(f"PRAGMA user_version = {SCHEMA + 1}")
    ended = sentinel("watch", "--once", str(log), "--state-dir", str(tmp_path / "state"))
    assert (ended.status, ended.err.count("the state is of another version")) == (0, 1)
    with Store(tmp_path / "state") as store:
        assert "non-finite-metric" in {incident.detector for incident in store.incidents(open_only=True)}


@pytest.mark.parametrize("number", [b"\x3a\x80\x11\x02", b"\xff\x12\x00\x07"], ids=["high", "below 0"])
def test_an_overwritten_schema_number_is_damage(tmp_path, number):
    Store(tmp_path).close()
    file = tmp_path / STATE_FILE
    said = []
    data = file.read_bytes()
    file.write_bytes(data[:60] + number + data[64:])
    sound_store(tmp_path, NOW, said.append).close()
    assert ["its schema number" in line for line in said] == [True]


def test_a_damaged_state_of_a_newer_version_is_damage(tmp_path):
    Store(tmp_path).close()
    file = tmp_path / STATE_FILE
    said = []
    data = file.read_bytes()
    newer = (SCHEMA + 1).to_bytes(4, "big")
    file.write_bytes(data[:60] + newer + data[64:4096] + bytes(len(data) - 4096))
    sound_store(tmp_path, NOW, said.append).close()
    assert ["the state was damaged" in line for line in said] == [True]
