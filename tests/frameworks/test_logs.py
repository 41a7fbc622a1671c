"""Logs that frameworks wrote: each is recognised, its tags mean what they mean there, and nobody is woken.

Where the training of a log went wrong, its `expected.toml` names what warns.
"""

import shutil
import tomllib
from pathlib import Path

import pytest

from sentinel.config.file import Config
from sentinel.detectors.api import Severity
from sentinel.replays.replaying import replay

pytestmark = pytest.mark.slow

HERE = Path(__file__).parent
EXPECTED = {file.parent.name: tomllib.loads(file.read_text()) for file in HERE.glob("*/expected.toml")}


@pytest.fixture(scope="module")
def replayed(tmp_path_factory):
    """The runs of each log. They are replayed together, which takes a quarter of the time."""
    place = tmp_path_factory.mktemp("logs")
    for name in EXPECTED:
        shutil.copytree(HERE / name / "log", place / name / "log")
    found = replay([place], Config(), lambda *_: None)
    assert not found.read_issues
    runs = {name: [] for name in EXPECTED}
    for run in found.runs:
        runs[run.run_pipeline.log.name.partition("/")[0]].append(run)
    return runs


def understood(run):
    log = run.run_pipeline.log
    found = log.understanding()
    framework = {"framework": found.framework} if found.framework else {}
    of_severity = {
        name: [incident.detector for incident in run.incidents.values() if incident.severity is severity]
        for name, severity in (("informs", Severity.INFO), ("warns", Severity.WARNING))
    }
    return {
        "name": log.name.partition("/")[2].removeprefix("log/"),
        "format": log.run.format,
        **framework,
        **{name: detectors for name, detectors in of_severity.items() if detectors},
        **({"attempts": log.attempts} if log.attempts != 1 else {}),
        "signals": found.signals,
    }


@pytest.mark.parametrize("name", sorted(EXPECTED))
def test_a_framework_is_understood_by_its_own_log(replayed, name):
    assert [understood(run) for run in replayed[name]] == EXPECTED[name]["run"]
    for run in replayed[name]:
        assert not run.read_issues
        assert all(one.severity < Severity.CRITICAL for one in run.incidents.values())
