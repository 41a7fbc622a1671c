"""Runs of an archive beside one another, as one replay compares them."""

import json

import pytest
from msgspec.structs import replace

from sentinel.archives.comparing import compared
from sentinel.archives.index import Contents
from sentinel.common.errors import SentinelError
from sentinel.common.shard import Shard
from sentinel.replays.replaying import replay
from sentinel.report import archive as report
from sentinel.report.json import document
from tests.archives.conftest import NOW, archived, as_json, config, whole

pytestmark = pytest.mark.long  # each judges a dozen runs


@pytest.fixture
def sweep(tmp_path):
    """Runs that differ in the learning rate and the seed, each in a directory of its own."""
    for lr in (0.1, 0.2, 0.4):
        for seed in (1, 2):
            place = tmp_path / "sweep" / f"lr-{lr}-seed-{seed}"
            place.mkdir(parents=True)
            rows = [{"config": {"lr": lr, "seed": seed, "layers": [2, 3], "note": None}}]
            rows += [{"step": i, "loss": 1 + lr * seed / (1 + i), "grad_norm": lr} for i in range(300)]
            (place / "metrics.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    return tmp_path / "sweep"


def test_an_archive_says_of_runs_beside_one_another_what_one_replay_says(tmp_path, sweep):
    expected = document(replay([sweep], config(sweep), lambda *_: None, compare=True), NOW)["comparisons"]
    assert {comparison["setting"] for comparison in expected} == {"lr"}
    for index in range(3):
        results, _ = archived(tmp_path / "results", sweep, shard=Shard(index, 3), compare=True)
    found = replace(whole(results), comparisons=compared(Contents.from_results(results)))
    assert json.loads("".join(report.pieces(found)))["comparisons"] == as_json(expected)


def test_without_the_courses_it_says_how_they_are_kept(tmp_path, sweep):
    results, first = archived(tmp_path / "results", sweep)
    with pytest.raises(SentinelError, match="--out DIR --compare"):
        compared(Contents.from_results(results))
    _, again = archived(tmp_path / "results", sweep, compare=True)
    assert again.completed == first.completed


def test_the_commands_compare(sentinel, tmp_path, sweep):
    assert sentinel("archive", "judge", sweep, "--out", "results", "--compare").status == 0
    for form in ("terminal", "markdown", "html"):
        told = sentinel("archive", "report", "results", "--compare", "--format", form).out
        assert "lr: 0.1 (2 runs), 0.2 (2 runs), 0.4 (2 runs)" in told
        assert "lr: 0.1" not in sentinel("archive", "report", "results", "--format", form).out
