import numpy as np
import pytest

from sentinel.comparison.compare import compare
from sentinel.comparison.means import Means
from sentinel.comparison.measures import ComparedRun
from sentinel.comparison.seeds import seeds_apart
from sentinel.sources.base import Chunk

STEPS = 400


def runs(ends, *, tag="reward", begin=0.0, noise=0.05, settings=None, steps=STEPS, seed=0):
    """Runs that go from a beginning to their ends within a fifth of the course."""
    random = np.random.default_rng(seed)
    step = np.arange(steps)
    return [
        subject(
            begin + (end - begin) * (1 - np.exp(-step / STEPS * 16)) + noise * random.normal(size=steps),
            tag=tag,
            name=f"run-{number}",
            settings={"lr": 0.1, "seed": number, **(settings or {})},
        )
        for number, end in enumerate(ends)
    ]


def subject(values, *, tag="reward", name="run", settings=None):
    means = Means()
    count = len(values)
    nothing = np.full(count, np.nan)
    means.add([Chunk.of_rows("log", [tag], np.arange(count), nothing, values[:, None], restarted=False)])
    return ComparedRun(name, settings or {}, {tag: [tag]}, means)


def told(subjects):
    return [
        finding.text
        for comparison in compare(subjects)
        for finding in comparison.findings
        if "gain less" in finding.text
    ]


def test_seeds_of_which_some_do_not_learn_are_told_once():
    (text,) = told(runs([1.0, 0.9, 0.1, 1.0, 0.0]))
    assert text.startswith("2 of 5 equal runs gain less than half of what the best one gains")
    assert "(run-4, run-2): reward ends between" in text


def test_few_of_the_runs_that_fall_short_are_named():
    (text,) = told(runs([1.0, 0.9, 0.3, 0.2, 0.1, 0.0]))
    assert "(run-5, run-4, run-3 and 1 more)" in text


def test_a_loss_learns_downwards():
    apart = seeds_apart(runs([0.1, 0.2, 2.2, 0.1, 0.1], tag="loss", begin=2.3))
    assert (apart.runs, apart.short) == (5, ["run-2"])
    assert (apart.low, apart.high) == pytest.approx((0.1, 2.2), abs=0.1)


def test_an_arm_of_a_sweep_is_told_with_its_value_and_once_in_a_grid():
    grid = [
        run
        for rate, batch in ((0.1, 8), (0.2, 8), (0.1, 16))
        for run in runs(
            [1.0, 1.0, 0.9, 0.0, 0.1] if (rate, batch) == (0.1, 8) else [1.0] * 5,
            settings={"lr": rate, "batch": batch},
            seed=batch,
        )
    ]
    assert len(compare(grid)) == 2
    (text,) = told(grid)
    assert text.startswith("2 of 5 equal runs with 8 gain less")


@pytest.mark.parametrize(
    "ends", [[1.0, 1.0, 0.1, 0.1], [1.0, 0.9, 0.8, 0.7, 0.6], [0.0] * 5, [1.0] * 5], ids=str
)
def test_few_seeds_and_those_that_learn_alike_are_silent(ends):
    assert seeds_apart(runs(ends)) is None


def test_what_differs_from_the_beginning_on_is_no_gain():
    assert seeds_apart([subject(level + np.zeros(STEPS)) for level in (0.1, 0.2, 0.3, 0.4, 0.9)]) is None


def test_what_goes_up_and_down_within_a_run_is_its_noise():
    wave = np.sin(np.linspace(0, 12 * np.pi, STEPS)) * np.linspace(0, 1, STEPS)
    assert seeds_apart([subject(sign * wave) for sign in (-1, -0.9, 1, 0.9, 0.8)]) is None


def test_runs_that_ended_early_and_copies_do_not_count():
    learned = runs([1.0] * 4)
    stuck = runs([0.0], seed=1)
    assert seeds_apart([*learned, *stuck]) is not None
    assert seeds_apart([*learned, *runs([0.0], steps=STEPS // 2)]) is None
    assert seeds_apart([*learned[1:], learned[1], *stuck]) is None
    assert seeds_apart([*learned, *runs([0.0], tag="loss")]) is None


def test_runs_that_log_nothing_by_which_they_are_judged_are_silent():
    assert seeds_apart(runs([1.0] * 5, tag="kl")) is None
    assert seeds_apart([run._replace(means=Means()) for run in runs([1.0] * 5)]) is None


@pytest.mark.slow
@pytest.mark.parametrize("persistence", [0.0, 0.8, 0.95])
def test_flat_courses_are_seldom_told(persistence):
    """Noise around no gain at all, the more alike neighbouring values are the harder."""
    random = np.random.default_rng(0)
    rang = 0
    for _ in range(200):
        shocks = random.normal(size=(5, 264)) * np.sqrt(1 - persistence**2)
        courses = shocks.copy()
        for place in range(1, courses.shape[1]):
            courses[:, place] += persistence * courses[:, place - 1]
        rang += seeds_apart([subject(course[200:]) for course in courses]) is not None
    assert rang <= 4
