import numpy as np
import pytest

from sentinel.comparison.compare import compare
from sentinel.comparison.means import Means
from sentinel.comparison.measures import ComparedRun
from sentinel.sources.base import Chunk

STEPS = 400


def subject(name, settings, *, seed=0, **levels):
    """A run whose signals fall from 1.5 times a level to it, with noise between steps and between seeds."""
    noise = np.random.default_rng(seed)
    step = np.arange(STEPS)
    courses = [
        level * (1 + 0.5 * np.exp(-step / 40) + 0.02 * noise.normal() + 0.05 * noise.normal(size=STEPS))
        for level in levels.values()
    ]
    means = Means()
    time = np.full(STEPS, np.nan)
    means.add([Chunk.of_rows("log", list(levels), step, time, np.column_stack(courses), restarted=False)])
    return ComparedRun(name, settings, {tag: [tag] for tag in levels}, means)


def texts(comparison):
    return [finding.text for finding in comparison.findings]


def test_an_effect_beyond_the_spread_of_seeds_is_told_from_chance():
    runs = [
        subject(f"{lr}-{seed}", {"lr": lr, "seed": seed}, seed=10 * number + seed, eval_loss=level)
        for number, (lr, level) in enumerate([(0.1, 1.0), (0.2, 0.5)])
        for seed in range(5)
    ]
    (comparison,) = compare(runs)
    (measure,) = comparison.measures
    assert measure.beyond_chance
    assert measure.ends == pytest.approx({"0.1": 1.0, "0.2": 0.5}, rel=0.05)
    assert measure.spread == pytest.approx(0.015, abs=0.01)
    assert texts(comparison)[1:] == ["eval loss differs from the start on"]


@pytest.mark.long
def test_equal_arms_seldom_differ_by_more_than_chance():
    rang = 0
    for trial in range(100):
        runs = [
            subject(f"{lr}-{seed}", {"lr": lr, "seed": seed}, seed=[trial, int(lr * 10), seed], loss=1.0)
            for lr in (0.1, 0.2)
            for seed in range(3)
        ]
        (comparison,) = compare(runs)
        rang += comparison.measures[0].beyond_chance
    assert rang <= 2


def test_one_run_a_value_is_no_result():
    (comparison,) = compare([subject(str(lr), {"lr": lr}, seed=int(lr * 10), loss=lr) for lr in (0.1, 0.2)])
    assert comparison.measures[0].beyond_chance is None
    assert [finding.catalogue for finding in comparison.findings] == [("R6",)]


def test_three_seeds_are_too_few():
    (comparison,) = compare([subject(str(s), {"lr": 1, "seed": s}, seed=s, loss=1) for s in range(3)])
    assert (comparison.setting, texts(comparison)) == ("seed", ["3 runs: a result takes five seeds or more"])


@pytest.mark.parametrize(
    ("norm", "loss", "found"), [(4, 1, 1), (2.2, 1, 1), (1, 4, 1), (1, 1, 0), (0.5, 1, 0)]
)
def test_what_grows_with_the_accumulation_is_not_divided(norm, loss, found):
    plain = subject("plain", {"gradient_accumulation_steps": 1}, seed=1, loss=2.0, grad_norm=1.0)
    summed = subject("summed", {"gradient_accumulation_steps": 4}, seed=2, loss=2.0 * loss, grad_norm=norm)
    (comparison,) = compare([plain, summed])
    assert [f.catalogue for f in comparison.findings].count(("O9", "G2")) == found


def test_runs_without_a_common_tag_are_not_compared():
    assert compare([subject("a", {"lr": 1}, loss=1), subject("b", {"lr": 2}, reward=1)]) == []
