import json
import re

import numpy as np
import pytest

from tests.fleets import write_tree


@pytest.fixture
def tree(tmp_path):
    return write_tree(tmp_path / "runs")


def judged(sentinel, *words):
    return {run["run"]: run for run in json.loads(sentinel("replay", *words, "--format", "json").out)["runs"]}


@pytest.mark.long
def test_a_run_is_held_against_the_others_of_the_tree(sentinel, tree):
    runs = judged(sentinel, str(tree))
    detectors = {name: [one["detector"] for one in run["incidents"]] for name, run in runs.items()}
    assert detectors.pop("run-5/metrics.jsonl") == ["worse-than-siblings"]
    assert not any(detectors.values())
    (incident,) = runs["run-5/metrics.jsonl"]["incidents"]
    assert incident["severity"] == "info"
    assert 90 <= incident["onset_step"] <= 132
    assert incident["evidence"]["siblings"] == 5


@pytest.mark.long
def test_a_report_has_the_band_of_the_siblings(sentinel, tree):
    sentinel("replay", str(tree), "--format", "html", "-o", str(tree / "report.html"))
    page = (tree / "report.html").read_text()
    drawn = [
        json.loads(data) for data in re.findall(r'<script type="application/json"[^>]*>(.*?)</script>', page)
    ]
    steps, low, high = drawn[0]["siblings"]["train/loss"]  # the worst run comes first
    assert steps == sorted(steps)
    assert (len(steps), steps[0], steps[-1]) == (32, 3, 197)
    assert all(np.less(low, high))
    values = dict(zip(*drawn[0]["curves"]["train/loss"][0], strict=True))
    assert np.mean([values[step] for step in steps[:16]]) < np.mean(high[:16])
    assert np.mean([values[step] for step in steps[16:]]) > np.mean(high[16:])


@pytest.mark.long
def test_a_run_without_siblings_says_so(sentinel, tree):
    (run,) = judged(sentinel, str(tree / "run-5")).values()
    (reason,) = [one for one in run["not_judged"] if one["detector"] == "worse-than-siblings"]
    assert reason == {"detector": "worse-than-siblings", "missing": [], "skipped": {"no siblings": 1}}


@pytest.mark.long
def test_a_baseline_of_three_runs_stands_for_the_siblings(sentinel, tree):
    (run,) = judged(sentinel, str(tree / "run-5"), *(f"--baseline={tree}/run-{n}" for n in range(5))).values()
    (incident,) = run["incidents"]
    assert (incident["detector"], incident["evidence"]["siblings"]) == ("worse-than-siblings", 5)
