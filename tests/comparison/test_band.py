import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from sentinel.comparison.band import COURSE_POINTS, ONE_IN, aligned, band, departure, scores

STEPS = np.arange(1, 321)


def fleet(runs, random):
    """Curves that fall, each with a level and a noise of its own."""
    levels = random.normal(size=(runs, 1))
    noise = random.normal(size=(runs, COURSE_POINTS))
    return np.exp(-np.arange(COURSE_POINTS) / 8) + 0.03 * levels + 0.02 * noise


def test_a_course_has_a_mean_for_each_place_of_the_plan():
    course = aligned(STEPS, STEPS.astype(float), plan=320, whole=True)
    assert course[:2].tolist() == [5.5, 15.5]
    assert course[-1] == 315.5


def test_what_is_not_logged_yet_is_not_known_and_gaps_are_filled():
    course = aligned(np.array([5, 25, 35, 95]), np.array([1.0, 3.0, 4.0, 9.0]), plan=320, whole=False)
    assert course[:4].tolist() == [1, 2, 3, 4]
    assert np.isfinite(course).sum() == 9  # it is at the tenth place, which may still change
    beyond = aligned(np.array([5, 400]), np.array([1.0, 9.0]), plan=320, whole=True)
    assert np.isfinite(beyond).sum() == 1


def test_a_run_that_leaves_the_band_is_told_from_where_on():
    siblings = fleet(20, np.random.default_rng(0))
    run = siblings.mean(axis=0)
    run[12:] += 0.5
    left = departure(run, band(siblings, 1))
    assert left.onset == 12
    assert left.position == 14
    assert departure(-run, band(-siblings, 1)) is None  # it is better


def test_two_outliers_are_no_departure():
    siblings = fleet(20, np.random.default_rng(0))
    run = siblings.mean(axis=0)
    run[[12, 13]] += 50
    assert departure(run, band(siblings, 1)) is None


def test_siblings_that_are_all_alike_allow_what_logs_round():
    siblings = np.ones((3, COURSE_POINTS))
    assert departure(siblings[0] * 1.001, band(siblings, 1)) is None
    assert departure(siblings[0] * 2, band(siblings, 1)) is not None


@pytest.mark.long
@pytest.mark.parametrize("count", [3, 8, 20])
def test_hardly_a_healthy_run_departs(count):
    random = np.random.default_rng(count)
    runs = 2000
    departed = 0
    for _ in range(runs):
        own, *siblings = fleet(count + 1, random)
        departed += departure(own, band(np.array(siblings), 1)) is not None
    assert departed <= 2 * runs / ONE_IN


@pytest.mark.slow
@given(arrays.arrays(float, COURSE_POINTS, elements=st.floats(-1e6, 1e6)))
def test_scores_do_not_depend_on_what_is_still_to_come(course):
    level = np.zeros(COURSE_POINTS)
    noise = np.ones(COURSE_POINTS)
    whole = scores(course, level, noise)
    begun = course.copy()
    begun[COURSE_POINTS // 2 :] = np.nan
    part = scores(begun, level, noise)
    known = ~np.isnan(part)
    assert (part[known] == whole[known]).all()


def test_the_limit_is_set_by_each_sibling_against_the_others():
    siblings = fleet(5, np.random.default_rng(0))
    worst = []
    for own in range(5):
        others = band(np.delete(siblings, own, axis=0), 1)
        worst.append(scores(siblings[own], others.level, others.noise).max())
    expected = np.mean(worst) + 4.604 * np.std(worst, ddof=1) * np.sqrt(1 + 1 / 5)  # Student's t at 1 in 200
    assert band(siblings, 1).limit == pytest.approx(max(expected, 4.604), rel=1e-3)
