"""Curves for plots: bounded, as fine in every part of a run, and no peak is lost."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sentinel.series.curves import BUCKETS, Curve, Curves
from sentinel.sources.base import Chunk


def curve(values, *cuts):
    made = Curve()
    for part in np.split(np.arange(len(values)), cuts):
        made.add(part.astype(np.int64), np.asarray(values, dtype=float)[part], part / 2)
    return made


@pytest.mark.slow
@given(st.lists(st.floats(allow_nan=False, allow_infinity=False), max_size=300), st.integers(2, 40))
def test_the_lowest_and_the_highest_value_are_kept_in_their_places(values, most):
    points = curve(values).points(most)
    assert len(points) <= max(most, 2)
    assert [point.step for point in points] == sorted(point.step for point in points)
    assert all(values[point.step] == point.value for point in points)
    if values:
        drawn = [point.value for point in points]
        assert (min(drawn), max(drawn)) == (min(values), max(values))


@pytest.mark.slow
@settings(max_examples=20)
@given(st.lists(st.integers(0, 9000), max_size=5))
def test_it_makes_no_difference_how_the_points_arrive(cuts):
    values = np.random.default_rng(1).normal(size=9000).cumsum()
    assert curve(values, *sorted(cuts)).points() == curve(values).points()


@pytest.mark.slow
def test_a_single_peak_in_a_million_points_is_drawn():
    values = np.zeros(1_000_000)
    values[654_321] = 1.0
    points = curve(values, *range(0, 1_000_000, 50_000)).points()
    assert (654_321, 1.0) in {(point.step, point.value) for point in points}
    assert BUCKETS <= len(points) <= 2 * BUCKETS
    assert np.diff([point.step for point in points]).max() < 3 * 1_000_000 / BUCKETS, "every part as fine"


def test_a_step_that_goes_back_begins_another_attempt_and_what_is_not_finite_is_said():
    made = Curve()
    made.add(np.array([1, 2, 3, 2, 3]), np.array([1.0, np.nan, 3.0, 4.0, np.inf]), np.arange(5.0))
    assert [(p.attempt, p.step, p.value) for p in made.points()] == [(0, 1, 1.0), (0, 3, 3.0), (1, 2, 4.0)]
    assert made.lost_at == 2


def test_curves_are_of_tags():
    tags = np.array([0, 1, 0, 1], np.uint32)
    chunk = Chunk("", ["a", "b"], tags, np.arange(4), np.full(4, np.nan), np.arange(4.0))
    curves = Curves()
    curves.add([chunk, chunk])
    assert {tag: len(one.points()) for tag, one in curves.of.items()} == {"a": 4, "b": 4}


def test_a_chunk_that_brings_only_settings_adds_nothing():
    empty = np.empty(0)
    chunk = Chunk("log", ["loss"], empty.astype(np.uint32), empty.astype(np.int64), empty, empty)
    curves = Curves()
    curves.add([chunk])
    assert curves.of == {}
