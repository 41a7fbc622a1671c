"""Commands about what this user may not read or write: one line and a status."""

import pytest

from tests.permissions import commanded, needs_permissions

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
