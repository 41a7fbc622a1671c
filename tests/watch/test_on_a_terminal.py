"""A real watch whose standard error is a terminal, or goes to a receiver that the command line names."""

import json
import os
import pty
import signal
import subprocess
import sys

import pytest

from tests.patience import PATIENCE
from tests.sinks.receiver import Receiver
from tests.tools.docs import ROOT

pytestmark = pytest.mark.long  # real processes

WATCH = [sys.executable, "-m", "sentinel", "watch"]


@pytest.fixture
def run(tmp_path):
    """A run that goes on, and whose KL runs away."""
    place = tmp_path / "runs" / "grpo"
    place.mkdir(parents=True)
    rows = [{"step": step, "kl": 0.01 if step < 100 else 3.0} for step in range(200)]
    (place / "metrics.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    return place


def test_a_watch_on_a_terminal_shows_a_table_and_leaves_the_messages_above_it(tmp_path):
    ours, theirs = pty.openpty()
    paths = [str(ROOT / "sample_logs" / "kl-blowup"), "--state-dir", str(tmp_path)]
    screen = b""
    with subprocess.Popen([*WATCH, *paths], stdin=theirs, stdout=theirs, stderr=theirs) as watch:
        os.close(theirs)
        while b"Open incidents" not in screen or b"kl-blowup " not in screen.split(b"Open incidents")[-1]:
            screen += os.read(ours, 65536)
        watch.send_signal(signal.SIGINT)
        while part := _read(ours):
            screen += part
        assert watch.wait(PATIENCE) == 0
    os.close(ours)
    assert b"kl-blowup in " in screen
    assert b"Traceback" not in screen


def test_a_configuration_with_another_sink_leaves_the_alerts_on_the_terminal(tmp_path, run):
    ours, theirs = pty.openpty()
    with Receiver() as receiver:
        config = tmp_path / "sentinel.toml"
        config.write_text(f'paths = ["{run}"]\n[[sinks]]\ntype = "webhook"\nurl = "{receiver.url}"\n')
        words = [*WATCH, "--once", "--config", str(config), "--state-dir", str(tmp_path / "state")]
        with subprocess.Popen(words, stdin=theirs, stdout=theirs, stderr=theirs) as watch:
            os.close(theirs)
            screen = b"".join(iter(lambda: _read(ours), b""))
        assert watch.returncode == 0
        sent = [json.loads(one.body) for one in receiver.received]
    os.close(ours)
    assert [one["incident"]["detector"] for one in sent] == ["kl-blowup"]
    assert b"kl-blowup in " in screen


def test_a_receiver_on_the_command_line_gets_what_the_terminal_gets(tmp_path, run):
    state = str(tmp_path)
    with Receiver() as receiver:
        words = [*WATCH, str(run), "--once", "--state-dir", state, "--notify", receiver.url]
        ran = subprocess.run(words, capture_output=True, text=True, timeout=PATIENCE, check=True)
        sent = [json.loads(one.body) for one in receiver.received]
    assert [one["incident"]["detector"] for one in sent] == ["kl-blowup"]
    assert "kl-blowup in " in ran.stderr
    assert receiver.url not in ran.stderr


def _read(terminal):
    try:
        return os.read(terminal, 65536)
    except OSError:  # the other end is closed
        return b""
