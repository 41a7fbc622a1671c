"""The recipes of "Keep it running", with a program of ours in the place of Slurm."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.processes.running import until
from tests.processes.test_exits import needs_kernel

RECIPES = Path(__file__).parents[1] / "deploy" / "recipes"

TRAINING = """
import json, pathlib, sys, time
run = pathlib.Path("runs/exp-1")
run.mkdir(parents=True)
with (run / "metrics.jsonl").open("w", buffering=1) as log:
    for step in range(10**6):
        print(json.dumps({"step": step, "loss": 2 / (1 + step / 50), "lr": 1e-3}), file=log)
        time.sleep(0.02)
        if pathlib.Path("end").exists():
            sys.exit(1)
"""


def command(place, name, text):
    place.mkdir(exist_ok=True)
    (place / name).write_text(text)
    (place / name).chmod(0o755)


def follows_a_process(state):
    """Whether the watch of this state holds a handle of a process."""
    try:
        watch = (state / "watch.lock").read_text()
        return any("pidfd" in str(one.readlink()) for one in Path(f"/proc/{watch}/fd").iterdir())
    except OSError:
        return False


@needs_kernel
@pytest.mark.long  # real processes
@pytest.mark.parametrize("script", ["slurm.sh", "slurm-processes.sh"])
def test_a_job_tells_of_a_training_that_crashes_in_the_moment_before_its_watch_ends(tmp_path, script):
    tools = tmp_path / "tools"
    command(tools, "srun", '#!/bin/sh\nexec "$@"\n')
    command(tools, "sentinel", f'#!/bin/sh\nexec {sys.executable} -m sentinel "$@"\n')
    command(tools, "python", f'#!/bin/sh\nexec {sys.executable} "$@"\n')
    (tmp_path / "train.py").write_text(TRAINING)
    environment = {
        **os.environ,
        "PATH": f"{tools}:{os.environ['PATH']}",
        "PYTHONPATH": str(RECIPES.parents[1]),
        "SLURM_SUBMIT_DIR": str(tmp_path),
        "SLURM_LOCALID": "0",
        "SLURM_NODEID": "0",
    }
    job = subprocess.Popen(
        ["bash", RECIPES / script], cwd=tmp_path, env=environment, text=True, stdout=-1, stderr=-2
    )
    with job:
        until(lambda: any(map(follows_a_process, tmp_path.glob(".sentinel*"))))
        (tmp_path / "end").touch()
        said = job.stdout.read()
    assert said.count("critical run-crashed in exp-1") == 1, said
    assert job.returncode == 1
