import numpy as np
import pytest
from msgspec.structs import replace

from sentinel.comparison.fingerprint import Fingerprint
from sentinel.comparison.means import Means
from sentinel.comparison.siblings import Sibling, among_siblings, compared_tags, healthy_siblings
from sentinel.series.buckets import Buckets

STEPS = np.arange(1, 201)


def sibling(seed, shift=0.0, *, healthy=True, scale=1.0, **settings):
    """A run whose loss falls from 3 to 1, with a level of its own, higher by ``shift`` from half on."""
    random = np.random.default_rng(seed)
    loss = 1 + 2 * np.exp(-STEPS / 40) + 0.02 * random.normal() + 0.05 * random.normal(size=200)
    means = Means()
    course = Buckets()
    course.push(scale * (loss + shift * (STEPS > 100)), STEPS)
    means._buckets["train/loss"] = course
    stated = {"lr": 0.1, "batch_size": 8, "seed": seed} | settings
    return Sibling(
        name=f"run-{seed}",
        training=str(seed),
        fingerprint=Fingerprint.from_settings(None, ["train/loss"], stated),
        signals={"loss": ["train/loss"]},
        means=means,
        plan=None,
        last_step=200,
        healthy=healthy,
    )


def company(run, others):
    return among_siblings(run, healthy_siblings([run, *others])(run.fingerprint))


FLEET = [sibling(seed) for seed in range(10)]


def test_a_run_that_is_worse_is_told_with_how_far_and_since_when():
    found = company(sibling(50, 0.5), FLEET)
    assert (found.siblings, found.differ) == (10, "")
    assert found.names == sorted(f"run-{seed}" for seed in range(10))
    (departed,) = found.deviations
    assert departed.tag == "train/loss"
    assert departed.higher
    assert 94 <= departed.onset_step <= 113 < departed.step < 140
    assert departed.usual < departed.limit < departed.level


def test_a_run_like_its_siblings_and_one_that_is_better_stay():
    assert company(sibling(50), FLEET).deviations == []
    assert company(sibling(50, -0.5), FLEET).deviations == []


@pytest.mark.parametrize(
    "others",
    [
        FLEET[:2],
        [sibling(seed, healthy=False) for seed in range(10)],
        [sibling(50) for _ in range(10)],  # further logs of its own training
        [sibling(seed, depth=4, width=2, heads=1) for seed in range(10)],
        [],
    ],
    ids=["two", "ill", "own", "another-program", "none"],
)
def test_without_three_healthy_siblings_nothing_is_judged(others):
    assert company(sibling(50, 0.5), others) is None


@pytest.mark.parametrize("done", range(20, 200, 20))
def test_a_run_that_goes_on_is_like_siblings_that_fall_as_steeply(done):
    def steep(seed, steps):
        run = sibling(seed)
        courses = Buckets()
        exact = np.random.default_rng(seed).normal(size=200) / 1000
        courses.push(np.exp(-STEPS[:steps] / 20) * (1 + exact[:steps]), STEPS[:steps])
        run.means._buckets["train/loss"] = courses
        return replace(run, plan=200.0, whole=steps == 200, last_step=steps)

    fleet = [steep(seed, 200) for seed in range(20)]
    assert company(steep(50, done), fleet).deviations == []
    assert company(steep(50, 200), fleet).deviations == []


def test_copies_of_one_run_are_one():
    copies = [sibling(0) for _ in range(10)]
    renamed = [replace(copy, training=f"copy-{n}") for n, copy in enumerate(copies)]
    assert company(sibling(50, 0.5), renamed) is None


def test_what_differs_is_named():
    assert company(sibling(50, 0.5, depth=9), FLEET).differ == "depth 9 (theirs not stated)"


def test_in_a_sweep_only_runs_with_the_own_value_are_siblings():
    sweep = [sibling(10 + n, depth=n % 2) for n in range(10)]
    assert company(sibling(50, 0.5, depth=1), sweep).siblings == 5
    assert company(sibling(50, 0.5, depth=3), sweep) is None


def test_where_the_batch_size_differs_only_the_shape_counts():
    assert company(sibling(50, scale=1.5, batch_size=16), FLEET).deviations == []
    assert company(sibling(50, 0.8, scale=1.5, batch_size=16), FLEET).deviations


def test_the_shortest_name_of_a_signal_is_compared_whatever_came_first():
    assert compared_tags(["lr-Adam", "lr", "b/lr", "a/lr", "c/lr"]) == ["lr", "a/lr", "b/lr", "c/lr"]
