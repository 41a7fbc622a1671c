"""The process that writes a log: it has the log open, or a file beside the log names it."""

import os
import socket
import time
from datetime import datetime

import orjson
import pytest

from sentinel.detectors.run_checks import Writer
from sentinel.processes.description import describe_writer
from sentinel.processes.finder import Host
from tests.processes.running import holding


def told(place):
    """What is known of the process that writes a log."""
    return describe_writer(place, Host())


@pytest.fixture
def log(tmp_path):
    file = tmp_path / "run" / "metrics.jsonl"
    file.parent.mkdir()
    file.touch()
    return file


def wandb_names(directory, pid, host=None):
    (directory / "logs").mkdir(exist_ok=True)
    (directory / "files").mkdir(exist_ok=True)
    now = datetime.now().astimezone().strftime("%Y-%m-%d %H:%M:%S")
    line = f"{now},704 INFO    MainThread:{pid} [wandb_setup.py:_flush():81] Current SDK version is 0.31.0\n"
    (directory / "logs" / "debug.log").write_text(line)
    if host:
        metadata = {"os": "Linux", "host": host, "startedAt": "2026-01-01T00:00:00.000000Z"}
        (directory / "files" / "wandb-metadata.json").write_bytes(orjson.dumps(metadata))


@pytest.mark.slow
def test_the_process_that_has_the_log_open_is_named(log):
    assert told(log.parent).text == ""
    with holding(log) as one, log.open() as mine:
        assert os.getpid() != one.pid
        assert mine.read() == ""
        for place in (log, log.parent):
            assert told(place).text.startswith(f"process {one.pid} (")
            assert told(place).lives
    assert told(log.parent) == Writer()


@pytest.mark.slow
def test_the_process_that_a_pid_file_names_is_described_while_it_fits(log, tmp_path):
    pid_file = log.parent / "train.pid"
    with holding(tmp_path / "else") as one:
        pid_file.write_text(f"{one.pid}\n")
        log.touch()
        for place in (log, log.parent):
            assert told(place).text.startswith(f"process {one.pid} (")
        os.utime(pid_file, (0, time.time() - 86400))
        assert told(log).text == "", "a process that began long after the file was written is another one"
        os.utime(pid_file)
        os.utime(log, (0, time.time() - 86400))
        host = socket.gethostname()
        assert told(log).text == f"train.pid names process {one.pid}, which does not run on {host}"
        (log.parent / "other.pid").write_text("1")
        assert told(log).text == "", "two files name two processes"
        (log.parent / "metrics.pid").write_text("no number")
        assert told(log).text == ""
    for name in ("other.pid", "metrics.pid"):
        (log.parent / name).unlink()
    log.touch()
    assert told(log).text.endswith(f"which does not run on {host}")


@pytest.mark.slow
def test_the_process_that_wandb_names(log, tmp_path):
    run = log.parent
    host = socket.gethostname()
    with holding(tmp_path / "else") as one:
        wandb_names(run, one.pid)
        assert told(run).text.startswith(f"process {one.pid} (")
        wandb_names(run, one.pid, host="gpu-12")
        assert told(run).text == f"W&B's log names process {one.pid} on gpu-12, and this is {host}"
        assert told(run).lives is None
    wandb_names(run, one.pid, host=host)
    assert told(run).lives is False
    assert told(run).text == f"W&B's log names process {one.pid}, which does not run on {host}"


@pytest.mark.parametrize("damaged", [b"", b"\xff\xfe", b"12 13", b"9" * 5000, b"-4"])
def test_a_file_that_names_nothing_is_no_trouble(log, damaged):
    for name in ("train.pid", "logs/debug.log", "files/wandb-metadata.json"):
        (log.parent / name).parent.mkdir(exist_ok=True)
        (log.parent / name).write_bytes(damaged)
    assert told(log).text == ""
    assert told(log.parent).text == ""
