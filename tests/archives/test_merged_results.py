"""Several archives are reported on as one."""

import pytest

from sentinel.archives.merged_results import MergedResults
from tests.archives.conftest import archived, config, reported

pytestmark = pytest.mark.slow


def by_path(report):
    """The runs of a report by their paths; their names depend on what was judged together."""
    return {run["path"]: {key: value for key, value in run.items() if key != "run"} for run in report["runs"]}


@pytest.fixture
def two(tree, tmp_path):
    """The results of a tree in two directories. Two trainings have a log in each."""
    first = [tree / "in-two-parts" / "a.jsonl", tree / "two-logs" / "metrics.csv"]
    second = [tree / "in-two-parts" / "b.jsonl", tree / "two-logs" / "metrics.jsonl"]
    second += [each for each in tree.iterdir() if each.is_dir() and each not in {log.parent for log in first}]
    return [
        archived(tmp_path / f"{number}", tree, settings=config(*paths))[0]
        for number, paths in enumerate((first, second))
    ]


def test_two_archives_are_reported_on_as_one_of_all_their_runs(tree, tmp_path, two):
    whole, _ = archived(tmp_path / "whole", tree)
    expected = reported(whole)
    merged = reported(MergedResults(two))
    assert by_path(merged) == by_path(expected)
    assert merged["coverage"] == expected["coverage"]
    alone = [by_path(reported(one)) for one in two]
    assert by_path(merged) != alone[0] | alone[1], "which run goes on in another is known of both together"


def test_a_run_in_both_counts_once(tree, tmp_path):
    results, _ = archived(tmp_path / "out", tree)
    again, _ = archived(tmp_path / "again", tree)
    assert reported(MergedResults([results, again])) == reported(results)


def test_the_command_takes_several_directories(tree, tmp_path, sentinel):
    archived(tmp_path / "out", tree)
    archived(tmp_path / "more", tree / "two-logs")
    alone = sentinel("archive", "report", tmp_path / "out", "--format", "json")
    both = sentinel("archive", "report", tmp_path / "out", tmp_path / "out", tmp_path / "more")
    assert alone.status == both.status == 0
    missing = sentinel("archive", "report", tmp_path / "out", tmp_path / "none")
    assert (missing.status, "no results" in missing.err) == (2, True)
