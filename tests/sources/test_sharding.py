"""Which runs of a tree each of several watches follows."""

from pathlib import Path
from types import SimpleNamespace

import pytest

from sentinel.common.shard import Shard
from sentinel.sources.discovery import discover
from sentinel.sources.location import Url
from sentinel.sources.sharding import shard_of

LINES = '{"step": 1, "loss": 2.0}\n{"step": 2, "loss": 1.9}\n'
LOGS = (
    "a/metrics.jsonl",
    "a/late/metrics.jsonl",
    "b.v2/metrics.jsonl",
    "b.v2/eval/metrics.jsonl",
    "c.jsonl",
    "c/more/metrics.jsonl",
    "d/metrics.jsonl",
)


@pytest.fixture
def tree(tmp_path):
    for name in LOGS:
        log = tmp_path / name
        log.parent.mkdir(parents=True, exist_ok=True)
        log.write_text(LINES)
    return tmp_path


def shares(places, count):
    """The runs below the places that each share holds."""
    runs = discover(places).runs
    assert len(runs) == len(LOGS)
    return [{run.id for run in shard_of(runs, Shard(i, count), places)} for i in range(count)]


@pytest.mark.parametrize("count", [1, 2, 3, 7])
def test_each_run_is_in_one_share_and_a_directory_in_the_same(tree, count):
    by_share = shares([tree], count)
    assert sum(map(len, by_share)) == len(LOGS)
    for stem in "abcd":
        assert sum(any(f"{tree}/{stem}" in run for run in share) for share in by_share) == 1


def test_a_glob_a_link_and_another_mount_give_the_same_shares(tree, tmp_path_factory):
    elsewhere = tmp_path_factory.mktemp("mounted") / "runs"
    elsewhere.symlink_to(tree)
    assert shares([tree], 3) == shares([tree / "*"], 3) == shares([elsewhere], 3)


@pytest.mark.parametrize(
    ("path", "place"),
    [
        (Url("wandb", ("team", "project", "abc")), Url("wandb", ("team", "project"))),
        (Path("/elsewhere/run"), Path("/runs")),  # which a link reached
        (Path("/runs"), Path("/runs")),
    ],
)
def test_a_run_anywhere_is_in_one_share(path, place):
    run = SimpleNamespace(path=path)
    assert sum(len(shard_of([run], Shard(index, 5), [place])) for index in range(5)) == 1
