"""The GitHub Action: its form is GitHub's, and its scripts do what it says."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).parents[1]
FOLDER = ROOT / "deploy" / "github-action"
ACTION = yaml.safe_load((FOLDER / "action.yml").read_text())


@pytest.mark.slow  # real processes
@pytest.mark.parametrize(
    ("file", "form"),
    [
        (FOLDER / "action.yml", "github-actions"),
        (FOLDER / "workflow.yml", "github-workflows"),
        (ROOT / ".github" / "workflows" / "ci.yml", "github-workflows"),
    ],
    ids=["action", "workflow", "own"],
)
def test_the_form_is_that_of_github(file, form):
    command = [sys.executable, "-m", "check_jsonschema", "--builtin-schema", f"vendor.{form}"]
    done = subprocess.run([*command, file], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr


def test_the_sample_gives_inputs_that_there_are():
    (job,) = yaml.safe_load((FOLDER / "workflow.yml").read_text())["jobs"].values()
    assert job["steps"][-1]["with"].keys() <= ACTION["inputs"].keys()


def test_the_sample_judges_a_training_that_failed():
    (job,) = yaml.safe_load((FOLDER / "workflow.yml").read_text())["jobs"].values()
    assert job["steps"][-1]["if"] == "${{ !cancelled() }}"


@pytest.fixture
def job(tmp_path):
    """Runs a step of the action in a directory of its own, as GitHub does."""
    summary = tmp_path / "summary.md"
    outputs = tmp_path / "outputs"
    for file in (summary, outputs):
        file.touch()

    def run(name, **given):
        (step,) = (step for step in ACTION["runs"]["steps"] if step.get("name") == name)
        environment = {
            **os.environ,
            "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
            "GITHUB_ACTION_PATH": str(FOLDER),
            "GITHUB_STEP_SUMMARY": str(summary),
            "GITHUB_OUTPUT": str(outputs),
            **{key: str(value) for key, value in given.items()},
        }
        assert set(step["env"]) == set(given)
        command = ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", step["run"]]
        done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True)
        return done, summary.read_text(), outputs.read_text()

    return run


@pytest.mark.long  # real processes
def test_the_replay_step_leaves_summary_and_results(job, tmp_path):
    paths = f"\n{ROOT}/sample_logs/kl-blowup\n\n"
    given = {"FAIL_ON": "critical", "BASELINE": "", "CONFIG": "", "SARIF": "out.sarif"}
    done, summary, outputs = job("Replay", PATHS=paths, **given)
    assert done.returncode == 0, done.stderr
    assert summary.startswith("**Critical: The KL to the reference is ")
    assert outputs == "status=1\n"
    (run,) = json.loads((tmp_path / "out.sarif").read_text())["runs"]
    assert [one["ruleId"] for one in run["results"]] == ["kl-blowup"]


@pytest.mark.long  # real processes
def test_inputs_are_never_executed(job, tmp_path):
    hostile = "$(touch hit); `touch hit`; ' \" --config=x"
    given = {"FAIL_ON": "critical", "BASELINE": hostile, "CONFIG": "", "SARIF": "out.sarif"}
    done, summary, outputs = job("Replay", PATHS=f"--help\n{hostile}", **given)
    assert (done.returncode, summary, outputs) == (0, "", "status=2\n")
    assert not (tmp_path / "hit").exists()


def test_the_last_step_fails_as_sentinel_did(job):
    (last,) = (step["name"] for step in ACTION["runs"]["steps"][-1:])
    assert [job(last, STATUS=status)[0].returncode for status in (0, 1, 2)] == [0, 1, 2]
