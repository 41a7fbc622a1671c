"""Logs that frameworks wrote: each is recognised, its tags mean what they mean there, and nobody is woken."""

import shutil
import tomllib
from pathlib import Path

import pytest

from detectors.api import Severity
from sentinel.config.file import Config
from sentinel.replaying import replay

pytestmark = pytest.mark.slow

HERE = Path(__file__).parent
EXPECTED = {file.parent.name: tomllib.loads(file.read_text()) for file in HERE.glob("*/expected.toml")}


def understood(run):
    log = run.tracker.log
    found = log.understanding()
    framework = {"framework": found.framework} if found.framework else {}
    informs = [incident.detector for incident in run.incidents.values()]
    return {
        "name": log.name,
        "format": log.run.format,
        **framework,
        **({"informs": informs} if informs else {}),
        **({"attempts": log.attempts} if log.attempts != 1 else {}),
        "signals": found.signals,
    }


@pytest.mark.parametrize("name", sorted(EXPECTED))
def test_a_framework_is_understood_by_its_own_log(name, tmp_path):
    shutil.copytree(HERE / name / "log", tmp_path / "log")
    found = replay([tmp_path / "log"], Config(), lambda *_: None)
    assert not found.complaints
    assert [understood(run) for run in found.runs] == EXPECTED[name]["run"]
    for run in found.runs:
        assert not run.complaints
        assert all(one.severity is Severity.INFO for one in run.incidents.values())
