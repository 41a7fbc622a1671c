"""The scripts of "Keep it running" under a real Slurm of one node, which listens to this machine alone."""

import getpass
import os
import shutil
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.patience import PATIENCE

RECIPES = Path(__file__).parents[1] / "deploy" / "recipes"
DAEMONS = [shutil.which(name) for name in ("slurmctld", "slurmd")]

pytestmark = [
    pytest.mark.long,  # jobs wait for each other's ends
    pytest.mark.skipif(None in DAEMONS, reason="needs Debian's package slurm-wlm on the PATH"),
]

CONFIGURATION = """
ClusterName=trial
SlurmctldHost={host}(127.0.0.1)
SlurmctldPort={controller}
SlurmdPort={node}
SlurmUser={user}
SlurmdUser={user}
AuthType=auth/none
CredType=cred/none
CommunicationParameters=NoCtldInAddrAny,NoInAddrAny
StateSaveLocation={place}/state
SlurmdSpoolDir={place}/spool
SlurmctldPidFile={place}/slurmctld.pid
SlurmdPidFile={place}/slurmd.pid
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
KillWait=5
NodeName={host} NodeAddr=127.0.0.1 CPUs={cpus} State=UNKNOWN
PartitionName=all Nodes=ALL Default=YES State=UP OverTimeLimit=0
"""

TRAINING = """
import json, pathlib, signal, sys
run = pathlib.Path(sys.argv[2]) / "exp-1"
run.mkdir(parents=True)
with (run / "metrics.jsonl").open("w", buffering=1) as log:
    for step in range(300):
        row = {"step": step, "loss": 2 / (1 + step / 50) if step < 200 else float("nan"), "lr": 1e-3}
        print(json.dumps(row), file=log)
"""

ENDS = {"ends": "", "fails": "sys.exit(3)", "is stopped": "signal.pause()"}
"""How the training goes on after its last row."""


@pytest.fixture(scope="module")
def slurm(tmp_path_factory):
    """The environment of somebody on the login node, with sentinel in the home directory."""
    place = tmp_path_factory.mktemp("slurm")
    for name in ("state", "spool"):
        (place / name).mkdir()
    with socket.create_server(("127.0.0.1", 0)) as one, socket.create_server(("127.0.0.1", 0)) as other:
        ports = {"controller": one.getsockname()[1], "node": other.getsockname()[1]}
    names = {"host": socket.gethostname().partition(".")[0], "cpus": os.cpu_count(), "place": place}
    configuration = place / "slurm.conf"
    configuration.write_text(CONFIGURATION.format(**names, **ports, user=getpass.getuser()))
    tools = place / "sentinel" / "bin"
    tools.mkdir(parents=True)
    (tools / "sentinel").write_text(f'#!/bin/sh\nexec {sys.executable} -m sentinel "$@"\n')
    (tools / "sentinel").chmod(0o755)
    (tools / "python").symlink_to(sys.executable)
    environment = {
        **os.environ,
        "SLURM_CONF": str(configuration),
        "HOME": str(place),
        "PATH": f"{tools}:{os.environ['PATH']}",
        "PYTHONPATH": str(RECIPES.parents[1]),
    }
    with (place / "daemons.log").open("wb") as told:
        daemons = [
            subprocess.Popen([daemon, "-D"], env=environment, stdout=told, stderr=told) for daemon in DAEMONS
        ]
        try:
            until(lambda: "idle" in words(["sinfo", "--noheader"], environment, place))
            yield environment
        finally:
            for daemon in reversed(daemons):
                daemon.terminate()
                daemon.wait(PATIENCE)


def words(command, environment, where):
    """What a command prints."""
    return subprocess.run(
        command, env=environment, cwd=where, text=True, capture_output=True, check=False
    ).stdout


def until(true):
    """Wait for Slurm, which has no event for what it is asked here."""
    end = time.monotonic() + PATIENCE
    while not true():
        assert time.monotonic() < end
        time.sleep(0.2)


@pytest.mark.parametrize("end", ENDS)
@pytest.mark.parametrize("script", ["slurm.sh", "slurm-processes.sh"])
def test_a_job_with_a_watch_tells_and_ends_as_its_training_does(slurm, tmp_path, script, end):
    (tmp_path / "train.py").write_text(TRAINING + ENDS[end])
    text = (RECIPES / script).read_text().replace("--nodes=2", "--nodes=1")  # all that there are
    (tmp_path / "train.sh").write_text(text)
    (tmp_path / "runs").mkdir()
    job = words(["sbatch", "--parsable", "train.sh"], slurm, tmp_path).strip()
    output = tmp_path / f"slurm-{job}.out"
    shown = ["scontrol", "show", "job", job]
    if end == "is stopped":
        until(lambda: output.is_file() and "critical" in output.read_text())
        words(["scancel", "--signal=TERM", job], slurm, tmp_path)  # as Slurm does before the limit of time
    until(lambda: "EndTime=Unknown" not in (told := words(shown, slurm, tmp_path)) and "RUNNING" not in told)
    said = output.read_text()
    assert said.count("critical non-finite-metric in exp-1") == 1, said
    assert "Traceback" not in said
    status = {"ends": "0:0", "fails": "3:0"}.get(end)
    assert not status or f"ExitCode={status}" in words(shown, slurm, tmp_path)
    (state,) = tmp_path.glob(".sentinel*")
    assert "non-finite-metric" in words(["sentinel", "status", "--state-dir", state.name], slurm, tmp_path)
