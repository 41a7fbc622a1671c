"""What the steps of a log count is known where the log names it."""

import json
from pathlib import Path

import pytest

from sentinel.sources.discovery import discover

LOGS = {
    "scores.csv": "episode,score\n" + "".join(f"{step},{step % 7}\n" for step in range(40)),
    "scores.jsonl": "".join(json.dumps({"episode": step, "score": step % 7}) + "\n" for step in range(40)),
    "train.log": "".join(f"Episode {step}/40  score: {step % 7}.25\n" for step in range(40)),
}
"""The same numbers as scripts write them."""


@pytest.mark.parametrize("name", LOGS)
def test_the_steps_of_a_log_of_episodes_count_episodes(tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_text(LOGS[name])
    (run,) = discover([tmp_path]).runs
    assert {chunk.unit for chunk in run.source.poll({}, 1000).chunks} == {"episode"}


@pytest.mark.parametrize("name", LOGS)
def test_the_steps_of_a_log_of_epochs_count_no_episodes(tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_text(LOGS[name].replace("pisode", "poch"))
    (run,) = discover([tmp_path]).runs
    assert "episode" not in {chunk.unit for chunk in run.source.poll({}, 1000).chunks}
