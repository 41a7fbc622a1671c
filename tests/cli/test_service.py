"""`sentinel watch` as a process of its own: it starts, says so, and ends when it is told to."""

import contextlib
import os
import pty
import re
import signal
import socket
import subprocess
import sys
import threading

import pytest

from tests.patience import PATIENCE
from tests.sinks.receiver import Receiver

pytestmark = pytest.mark.long


@contextlib.contextmanager
def watching(*words, cwd=None, **environment):
    command = [sys.executable, "-m", "sentinel", "watch", *map(str, words)]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True, cwd=cwd, env=environment) as process:
        limit = threading.Timer(PATIENCE, process.kill)
        limit.start()
        try:
            yield process
        finally:
            limit.cancel()
            process.kill()


def wait_for(process, text):
    said = []
    for line in process.stderr:
        said.append(line)
        if text in line:
            return line
    raise AssertionError(f"{text!r} is not in {''.join(said)}")


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_it_tells_and_ends_when_told(sick_run, tmp_path, number):
    words = ("--config", tmp_path / "sentinel.toml", "--state-dir", tmp_path / "state")
    with watching(*words) as process:
        wait_for(process, "kl-blowup")
        with watching(*words) as second:
            assert "another watch uses this state_dir" in second.communicate()[1]
            assert second.returncode == 2
        process.send_signal(number)
        rest = process.communicate()[1]
        assert process.returncode == 0
        assert "Traceback" not in rest


def test_the_service_manager_hears_of_it(sick_run, tmp_path):
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as manager:
        manager.bind(str(tmp_path / "notify"))
        manager.settimeout(PATIENCE)
        words = ("--config", tmp_path / "sentinel.toml", "--state-dir", tmp_path / "state", "--poll")
        with watching(*words, NOTIFY_SOCKET=str(tmp_path / "notify")) as process:
            assert manager.recv(999) == b"READY=1"
            assert manager.recv(999) == b"WATCHDOG=1\nSTATUS=1 runs"
            process.send_signal(signal.SIGHUP)
            while (heard := manager.recv(999)) != b"READY=1":
                assert re.match(rb"WATCHDOG=1|RELOADING=1\nMONOTONIC_USEC=\d+$", heard)
            process.terminate()
            while (heard := manager.recv(999)) != b"STOPPING=1":
                assert heard.startswith(b"WATCHDOG=1")
            process.communicate()
            assert process.returncode == 0


def sicken(directory):
    """A run of its own whose KL per token leaves the reference behind; equal logs would be copies of one."""
    directory.mkdir(parents=True)
    name = directory.name
    lines = [
        f'{{"step": {i}, "my/odd/kl": {0.01 if i < 100 else 3.0}, "of": "{name}"}}\n' for i in range(200)
    ]
    (directory / "metrics.jsonl").write_text("".join(lines))


def test_a_hangup_makes_it_read_its_configuration_again(sick_run, tmp_path):
    file = tmp_path / "sentinel.toml"
    fine = f'state_dir = "state"\n{file.read_text()}'
    file.write_text(fine)
    with Receiver() as receiver, watching("--config", file) as process:
        wait_for(process, "critical kl-blowup")
        for wrong, why in (
            ("pats = []\n", f"{file}:1: pats: unknown key"),
            (
                fine.replace('"state"', '"other"'),
                "`state_dir` cannot change while the watch runs; restart it",
            ),
            (
                f'{fine}[[sinks]]\ntype = "slack"\nurl_env = "NOT_SET"\n',
                "environment variable NOT_SET is empty",
            ),
        ):
            file.write_text(wrong)
            process.send_signal(signal.SIGHUP)
            wait_for(process, f"keeping the old configuration: {why}")
        sicken(tmp_path / "runs" / "second")
        wait_for(process, "critical kl-blowup in second/metrics.jsonl")
        file.write_text(f'{fine}[[sinks]]\ntype = "webhook"\nurl = "{receiver.url}"\n')
        process.send_signal(signal.SIGHUP)
        wait_for(process, "read the configuration again")
        sicken(tmp_path / "runs" / "third")
        receiver.wait_for(lambda: any(b"third" in r.body for r in receiver.received))
        process.terminate()
        assert "Traceback" not in process.communicate()[1]
        assert process.returncode == 0


def test_it_ends_with_its_terminal(sick_run, tmp_path):
    child, terminal = pty.fork()
    if not child:
        words = ["watch", "--config", str(tmp_path / "sentinel.toml"), "--state-dir", str(tmp_path / "state")]
        os.execv(sys.executable, [sys.executable, "-m", "sentinel", *words])
    said = b""
    while b"kl-blowup" not in said:
        said += os.read(terminal, 4096)
    os.close(terminal)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


def test_a_silent_server_holds_up_nobody(sick_run, tmp_path):
    with socket.create_server(("127.0.0.1", 0)) as silent:
        words = ("runs", "wandb://team/project", "--config", "sentinel.toml", "--state-dir", "state")
        url = f"http://127.0.0.1:{silent.getsockname()[1]}"
        places = dict.fromkeys(("HOME", "WANDB_DIR", "WANDB_CACHE_DIR", "WANDB_CONFIG_DIR"), str(tmp_path))
        account = {"WANDB_BASE_URL": url, "WANDB_API_KEY": "k3y0" * 10, "WANDB_ERROR_REPORTING": "false"}
        with watching(*words, cwd=tmp_path, **places, **account) as process:
            question, _ = silent.accept()
            with question:
                wait_for(process, "kl-blowup")
                process.terminate()
                rest = process.communicate()[1]
        assert process.returncode == 0
        assert "Traceback" not in rest
