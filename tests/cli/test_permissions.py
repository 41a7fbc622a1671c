"""Commands about what this user may not read or write: one line and a status."""

import json
import sqlite3

import pytest

from tests.permissions import commanded, needs_permissions, unprivileged

pytestmark = [pytest.mark.slow, needs_permissions]


@pytest.fixture
def closed(tmp_path):
    """A directory that may not be searched, with a log in it."""
    place = tmp_path / "closed"
    place.mkdir()
    (place / "metrics.jsonl").write_text('{"step": 1, "loss": 1.0}\n{"step": 2, "loss": 1.0}\n')
    place.chmod(0)
    yield place
    place.chmod(0o700)


@pytest.mark.parametrize("command", [(), ("replay",), ("runs",), ("report",)])
@pytest.mark.parametrize("name", ["metrics.jsonl", "*.jsonl"])
def test_a_log_below_a_closed_directory_is_one_line(closed, command, name):
    if command == ("report",):
        command = ("replay", "--format", "json")
    status, text = commanded(*command, closed / name)
    assert status == 2
    assert len(text.splitlines()) == 1
    assert str(closed / name) in text


@pytest.mark.parametrize("command", ["status", "silence list", "watch --once", "serve", "show 0"])
def test_a_state_that_may_not_be_reached_is_one_line(closed, command):
    words = command.split()
    paths = [closed.parent] if words[0] == "watch" else []
    status, text = commanded(*words, *paths, "--state-dir", closed / "state")
    assert status == 2
    assert len(text.splitlines()) == 1


def test_a_watch_names_what_it_may_not_read(closed):
    status, text = commanded("watch", "--once", closed / "metrics.jsonl", "--state-dir", closed.parent / "s")
    assert status == 0
    assert f"{closed / 'metrics.jsonl'}: cannot be read (Permission denied)" in text


@pytest.mark.parametrize("length", [300, 16_000])
def test_a_path_that_no_file_can_have_is_one_line(tmp_path, length):
    for name in ("[" * length, "a" * length):
        status, text = commanded("runs", tmp_path / name)
        assert (status, len(text.splitlines())) == (2, 1)


@pytest.fixture
def at_rest(tmp_path):
    """A state that no program has open, and that this user may read and not write."""
    runs = tmp_path / "runs"
    runs.mkdir()
    rows = [{"step": step, "loss": 2.0 * 0.97**step if step < 50 else float("nan")} for step in range(60)]
    (runs / "metrics.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    state = tmp_path / "state"
    assert commanded("watch", "--once", runs, "--state-dir", state)[0] == 0
    database = sqlite3.connect(state / "sentinel.sqlite")
    ((found,),) = database.execute("SELECT id FROM incidents").fetchall()
    database.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    database.close()
    for part in ("-wal", "-shm"):
        (state / f"sentinel.sqlite{part}").unlink(missing_ok=True)
    for file in state.iterdir():
        file.chmod(0o400)
    state.chmod(0o500)
    yield state, found
    state.chmod(0o700)


@pytest.mark.parametrize("command", ["status", "silence list", "show ID"])
def test_a_state_of_somebody_else_can_be_read_while_no_watch_runs(at_rest, command):
    """SQLite would make two files beside it even to read."""
    state, found = at_rest
    status, text = commanded(*command.replace("ID", found).split(), "--state-dir", state)
    assert (status, "cannot" in text) == (0, False)
    assert "non-finite-metric" in text or command == "silence list"


@pytest.mark.parametrize("command", ["ack ID", "silence remove 1", "silence add x --reason x"])
def test_a_state_of_somebody_else_is_changed_by_nobody_else(at_rest, command):
    state, found = at_rest
    status, text = commanded(*command.replace("ID", found).split(), "--state-dir", state)
    assert (status, len(text.splitlines())) == (2, 1)


def test_what_was_opened_at_rest_is_read_anew_once_a_watch_writes_it(at_rest):
    state, _ = at_rest
    code = """
import json, sys
from pathlib import Path
from sentinel.storage.store import Store
state = Path(sys.argv[1])
with Store(state, read_only=True) as reader:
    before = reader.silences(0.0)
    state.chmod(0o700)
    for file in state.iterdir(): file.chmod(0o600)
    with Store(state) as writer:
        from sentinel.notifications.silences import silence
        writer.add_silence(silence("*", "*", 1e10, "x", 0.0))
        print(json.dumps([len(before), len(reader.silences(0.0))]))
"""
    assert unprivileged(code, state) == [0, 1]
