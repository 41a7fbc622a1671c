"""What a tracker calls a run stands beside its directory wherever a command names it."""

import json
import shutil
from pathlib import Path

import pytest

NAMED = Path(__file__).parents[1] / "sources" / "fixtures" / "wandb" / "run-named.wandb"


@pytest.mark.slow
def test_tables_and_json_name_the_run_as_its_tracker_does(sentinel, tmp_path):
    shutil.copy(NAMED, tmp_path / "run-named.wandb")
    shown = "run-named.wandb (swift sun 3 in fixture)"
    for words in (("runs", "."), ("replay", "."), ("watch", ".", "--once")):
        ran = sentinel(*words)
        assert shown in ran.out + ran.err
    assert shown in sentinel("replay", ".", "--format", "markdown", "--details").out
    assert "run-named.wandb" in sentinel("replay", ".", "--format", "html").out
    (listed,) = json.loads(sentinel("runs", ".", "--format", "json").out)["runs"]
    assert (listed["run"], listed["display_name"]) == ("run-named.wandb", "swift sun 3")
    (watched,) = json.loads(sentinel("status", "--format", "json").out)["runs"]
    assert (watched["display_name"], watched["project"]) == ("swift sun 3", "fixture")
