import errno
import json
import os
import subprocess
import sys
import threading
import time

import pytest

from sentinel.sinks.base import Permanent, Transient
from sentinel.sinks.command import CommandConfig
from tests.patience import PATIENCE
from tests.sinks.samples import NOTIFICATION, digest

NOW = 1_767_230_000.0
COPY = "import sys; open(sys.argv[1], 'wb').write(sys.stdin.buffer.read())"


def run(*command, timeout_seconds=PATIENCE):
    CommandConfig(command=list(command), timeout_seconds=timeout_seconds).open().send(NOTIFICATION, NOW)


def test_the_command_gets_the_notification_on_its_standard_input(tmp_path):
    run(sys.executable, "-c", COPY, str(tmp_path / "it"))
    body = json.loads((tmp_path / "it").read_text())
    assert (body["event"], body["idempotency_key"]) == ("firing", NOTIFICATION.key)
    assert body["incident"]["detector"] == "kl-blowup"


def test_a_digest_has_the_form_of_a_webhook_s(tmp_path):
    config = CommandConfig(command=[sys.executable, "-c", COPY, str(tmp_path / "it")])
    config.open().send(digest(3), NOW)
    assert len(json.loads((tmp_path / "it").read_text())["notifications"]) == 3


def test_no_shell_reads_the_command(tmp_path):
    run("true", f"; touch {tmp_path}/owned", "$(false)")
    assert not (tmp_path / "owned").exists()


@pytest.mark.parametrize(
    ("script", "error", "why"),
    [
        ("exit 75", Transient, "asked to be run again"),
        ("exit 3", Permanent, "failed with status 3"),
        ("kill -9 $$", Transient, "signal 9 ended the command"),
    ],
)
def test_the_exit_status_says_whether_a_retry_helps(script, error, why):
    with pytest.raises(error, match=why):
        run("sh", "-c", script)


def test_a_command_has_the_environment_of_the_user(tmp_path):
    """It may begin the training again, which must not inherit what a watch sets to stay small."""
    set_by_watch = {"POLARS_MAX_THREADS", "OPENBLAS_NUM_THREADS", "PYDANTIC_DISABLE_PLUGINS"}
    user = {name: value for name, value in os.environ.items() if name not in set_by_watch}
    config = tmp_path / "sentinel.toml"
    command = ["sh", "-c", f"env >> {tmp_path / 'it'}"]
    config.write_text(f'[[sinks]]\ntype = "command"\ncommand = {json.dumps(command)}\n')
    words = [sys.executable, "-m", "sentinel", "test-alert", "--config", str(config)]
    subprocess.run(words, check=True, capture_output=True, env={**user, "OMP_NUM_THREADS": "3"})
    names = {line.partition("=")[0] for line in (tmp_path / "it").read_text().splitlines()}
    assert "OMP_NUM_THREADS" in names
    assert names.isdisjoint(set_by_watch)


def test_a_command_that_reads_nothing_may_succeed(tmp_path):
    run("touch", str(tmp_path / "it"))
    assert (tmp_path / "it").exists()


def test_a_command_that_is_missing_may_come():
    with pytest.raises(Transient, match="cannot be started: No such file"):
        run("/no/such/command")


@pytest.mark.slow
@pytest.mark.parametrize("start", ["", "setsid", "setsid setsid --fork"])
def test_a_command_that_hangs_ends_with_all_that_it_started(tmp_path, start):
    os.mkfifo(tmp_path / "alive")
    ended = threading.Event()

    def listen():
        with open(tmp_path / "alive", "rb") as pipe:
            pipe.read()
        ended.set()

    threading.Thread(target=listen, daemon=True).start()
    with pytest.raises(Transient, match=r"ran for more than 0\.2 s"):
        run("sh", "-c", f"{start} sleep 1000 > '{tmp_path}/alive' & sleep 1000", timeout_seconds=0.2)
    assert ended.wait(PATIENCE)


def test_it_prints_nothing(capfd):
    run("sh", "-c", "echo out; echo err >&2")
    assert capfd.readouterr() == ("", "")


def test_a_command_is_waited_for_without_a_sleep_that_a_clock_could_end(monkeypatch):
    """A sleep until a moment fails under a clock that was set back, and asking again and again costs time."""

    def fails(_):
        raise OSError(errno.EINVAL, "Invalid argument")

    monkeypatch.setattr(time, "sleep", fails)
    run("sh", "-c", "cat > /dev/null; exec sleep 0.2")


@pytest.mark.slow
def test_a_command_that_does_not_read_a_long_notification_ends_in_time():
    config = CommandConfig(command=["sleep", "600"], timeout_seconds=0.2)
    with pytest.raises(Transient, match=r"ran for more than 0\.2 s"):
        config.open().send(digest(300), NOW)


def test_a_command_whose_mark_cannot_be_read_yet_ends_all_the_same(monkeypatch):
    """The kernel shows no environment of a process for a moment after it began another program."""
    monkeypatch.setattr("sentinel.sinks.command.Path.read_bytes", lambda _: b"")
    with pytest.raises(Transient, match="ran for more than"):
        run("sleep", "600", timeout_seconds=0.01)
