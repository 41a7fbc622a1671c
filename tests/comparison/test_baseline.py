"""A run beside good ones: what is beyond chance, and what nobody can know."""

import json

import pytest

from sentinel.comparison.baseline import against
from sentinel.detectors.signals import Signal
from tests.comparison.test_compare import subject, texts


def good(count, level=1.0, tag="loss"):
    return [subject(f"good-{seed}", {}, seed=100 + seed, **{tag: level}) for seed in range(count)]


def test_a_loss_that_rests_too_high_is_told_from_chance():
    comparison = against(subject("new", {}, seed=1, loss=1.5), good(5))
    (measure,) = comparison.measures
    assert measure.beyond_chance
    assert measure.ends == pytest.approx({"this run": 1.5, "baseline": 1.0}, rel=0.05)
    assert measure.bests == pytest.approx(measure.ends, rel=0.05)
    told, parted = texts(comparison)
    assert "% worse; lowest 1." in told
    assert "more than chance, as 5 runs of the baseline differ by 0.0" in told
    assert parted.endswith("from the start on")


@pytest.mark.slow
def test_equal_runs_seldom_differ_by_more_than_chance():
    compared = [against(subject("new", {}, seed=[7, n], loss=1.0), good(4)) for n in range(50)]
    quiet = [one for one in compared if not one.measures[0].beyond_chance]
    assert len(quiet) >= 48
    assert all(len(one.findings) == 1 for one in quiet)  # nor are they said to part


def test_one_baseline_run_proves_nothing():
    comparison = against(subject("new", {}, seed=1, loss=2.0), good(1))
    assert comparison.measures[0].beyond_chance is None
    assert comparison.findings[0].catalogue == ("R6",)
    assert "does not tell how much equal runs differ" in texts(comparison)[0]


def test_a_higher_score_is_better():
    comparison = against(subject("new", {}, seed=1, eval_accuracy=0.6), good(4, 0.9, "eval_accuracy"))
    assert [one.signal for one in comparison.measures] == [Signal.EVAL_ACCURACY]
    assert "worse; highest " in texts(comparison)[0]


def test_nothing_in_common_is_said():
    comparison = against(subject("new", {}, loss=1.0), good(2, tag="reward"))
    assert comparison.measures == []
    assert texts(comparison)[0].startswith("logs nothing that runs are judged by")


@pytest.mark.long  # many runs
def test_the_command_compares_each_run_that_is_no_baseline(tmp_path, sentinel):
    for name, level, steps in (("good/a", 1.0, 90), ("good/b", 1.01, 90), ("new/c", 1.5, 60)):
        rows = [{"step": s, "loss": level + 1 / (1 + s) + 0.01 * (s % 3)} for s in range(steps)]
        (tmp_path / name).mkdir(parents=True)
        (tmp_path / name / "metrics.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    options = tmp_path, "--baseline", tmp_path / "good"
    (comparison,) = json.loads(sentinel("replay", *options, "--format", "json").out)["comparisons"]
    assert comparison["setting"] == "baseline"
    assert comparison["arms"]["this run"] == ["new/c/metrics.jsonl"]
    assert len(comparison["arms"]["baseline"]) == 2
    (measure,) = comparison["measures"]
    assert measure["bests"]["baseline"] == pytest.approx(1.01, abs=0.03)
    for form in ("terminal", "markdown", "html", "sarif"):
        shown = " ".join(sentinel("replay", *options, "--format", form).out.split())
        assert "c/metrics.jsonl beside 2 runs of the baseline" in shown
        assert "loss ends at 1.5" in shown
    lines = sentinel("replay", *options, "--format", "jsonl")
    assert (lines.status, lines.out) == (2, "")
    missing = sentinel("replay", tmp_path, "--baseline", "nowhere")
    assert (missing.status, missing.err) == (2, "sentinel: nowhere: no such file or directory\n")
