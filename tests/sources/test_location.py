"""Paths may be globs, and a path that is missing does not stop the others."""

import json
from pathlib import Path

import pytest

from sentinel.sources.discovery import common_path, discover, run_name
from sentinel.sources.location import fixed_part, is_pattern, matches
from tests.cli.conftest import sentinel

__all__ = ["sentinel"]


@pytest.fixture
def runs(tmp_path):
    for name in ("a", "b"):
        log(tmp_path, name)
    return tmp_path / "runs"


def log(directory, name):
    run = directory / "runs" / name / "logs"
    run.mkdir(parents=True)
    (run / "metrics.jsonl").write_text("".join(f'{{"step": {n}, "loss": {2 - n / 9}}}\n' for n in range(9)))


def names(place):
    found = discover([place])
    return [run_name(run, common_path([place])) for run in found.runs]


def test_a_glob_stands_for_what_it_matches_now(runs, tmp_path):
    pattern = runs / "*" / "logs"
    assert names(pattern) == ["a/logs/metrics.jsonl", "b/logs/metrics.jsonl"]
    log(tmp_path, "c")
    assert len(names(pattern)) == 3
    assert fixed_part(pattern) == runs


def test_two_stars_match_directories_of_any_depth(runs):
    assert len(names(runs / "**" / "metrics.jsonl")) == 2


def test_a_path_that_exists_by_its_name_is_no_glob(tmp_path):
    log(tmp_path, "lr=[0.1]")
    place = tmp_path / "runs" / "lr=[0.1]"
    assert not is_pattern(place)
    assert matches(place) == [place]
    assert len(discover([place]).runs) == 1


def test_a_glob_that_matches_nothing_is_missing(tmp_path):
    found = discover([tmp_path / "*" / "logs"])
    assert (found.missing, found.any_there) == ([tmp_path / "*" / "logs"], False)


@pytest.mark.long
def test_a_missing_path_does_not_stop_the_others(sentinel, runs):
    for command in ("replay", "runs"):
        ran = sentinel(command, "runs", "nowhere")
        assert ran.status == 0, command
        assert "a/logs" in ran.out, command
        assert "nowhere: no such file or directory" in ran.out, command
    assert sentinel("replay", "runs", "nowhere", "--fail-on", "critical").status == 1


@pytest.mark.slow
def test_the_json_of_a_replay_holds_the_runs_that_are_there(sentinel, runs):
    assert len(json.loads(sentinel("replay", "runs", "nowhere", "--format", "json").out)["runs"]) == 2


@pytest.mark.slow
def test_a_watch_waits_for_what_is_missing(sentinel, runs):
    Path("sentinel.toml").write_text('paths = ["runs", "nowhere", "later/*/logs"]\n')
    ran = sentinel("watch", "--once")
    assert ran.status == 0, ran.err
    assert "nowhere: no such file or directory; the watch waits for it" in ran.err
    assert "later/*/logs: nothing matches it yet; the watch waits for it" in ran.err


@pytest.mark.slow
def test_the_configuration_says_what_a_glob_matches(sentinel, runs):
    Path("sentinel.toml").write_text('paths = ["runs/*/logs", "later/*/logs"]\n')
    out = sentinel("check-config").out
    assert "runs/*/logs (`paths`): matches 2 paths here" in out
    assert "later/*/logs (`paths`): matches nothing here yet" in out
    assert "missing here" not in out
