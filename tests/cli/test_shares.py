"""A tree that several watches share."""

import json
import shutil

import pytest

from sentinel.sources.discovery import discover


@pytest.mark.long
def test_watches_that_share_a_tree_follow_each_run_once(sentinel, sick_run, tmp_path):
    tree = tmp_path / "tree"
    for number in range(6):
        shutil.copytree(sick_run, tree / f"run-{number}")
    followed = []
    told = []
    for index in range(3):
        state = ("--state-dir", tmp_path / f"state-{index}")
        assert sentinel("watch", tree, "--once", "--shard", f"{index}/3", *state).status == 0
        shown = json.loads(sentinel("status", "--format", "json", *state).out)
        followed += [run["path"] for run in shown["runs"]]
        told += [incident["path"] for incident in shown["incidents"]]
    everything = discover([tree]).runs
    assert sorted(followed) == sorted(str(run.path) for run in everything)
    assert sorted(told) == sorted(followed)


@pytest.mark.slow
def test_a_share_that_is_none_is_refused_with_its_form(sentinel, sick_run):
    told = sentinel("watch", sick_run, "--once", "--shard", "4/4")
    assert told.status == 2
    assert "--shard 4/4: write I/N with I from 0 to N - 1, such as 3/64" in told.err
