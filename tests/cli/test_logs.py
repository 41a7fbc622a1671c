"""What a command logs."""

import logging

import pytest

from sentinel.cli.logs import log_to_stderr


@pytest.fixture
def log(monkeypatch):
    root = logging.getLogger()
    handlers = root.handlers[:]
    level = root.level
    ours = logging.getLogger("sentinel").level
    yield logging.getLogger("sentinel.web")
    root.handlers[:] = handlers
    root.level = level
    logging.getLogger("sentinel").setLevel(ours)


def test_a_place_logs_once_a_minute_where_clients_could_make_it_log_at_will(log, capsys, monkeypatch):
    log_to_stderr(seldom=True)
    for minute in (0.0, 0.5, 1.0):
        monkeypatch.setattr("time.time", lambda now=60 * minute: now)
        log.error("after %s", minute)
    log.error("elsewhere")
    assert [line.rpartition(": ")[2] for line in capsys.readouterr().err.splitlines()] == [
        "after 0.0",
        "after 1.0",
        "elsewhere",
    ]
