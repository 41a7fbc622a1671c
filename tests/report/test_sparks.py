"""Small curves of many runs on one scale."""

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from sentinel.report.html.sparks import scales_of, spark


def heights(curve):
    return [float(point.split(",")[1]) for point in curve.points.split()]


def test_noise_stays_small_beside_a_curve_that_moves():
    noise = ("train/loss", [1.0, 1.01, 0.99, 1.0, 1.01])
    falling = ("loss", [*np.linspace(5, 1, 50)])
    scales = scales_of([noise, falling])
    assert np.ptp(heights(spark(noise, scales))) < 1
    assert np.ptp(heights(spark(falling, scales))) > 15


def test_a_run_that_diverged_does_not_flatten_the_others():
    well = [("loss", [*np.linspace(5, 1, 50)])] * 40
    scales = scales_of([*well, ("loss", [1.0, 1e30])])
    assert np.ptp(heights(spark(well[0], scales))) > 15


def test_a_scale_stays_while_the_values_move_a_little():
    before = scales_of([("loss", [*np.linspace(5.03, 1.04, 50)])])
    assert scales_of([("loss", [*np.linspace(5.03, 1.0401, 50)])]) == before


@pytest.mark.slow
@example([0.0, 5e-324])  # half of the smallest number is 0
@given(st.lists(st.floats(allow_nan=False, allow_infinity=False), min_size=2, max_size=20))
def test_whatever_was_logged_lies_within_the_picture(values):
    curve = spark(("x", values), scales_of([("x", values)]))
    assert all(0 <= height <= 24 for height in heights(curve))
    assert 0 <= curve.top <= curve.top + curve.height <= 24.5


def test_one_value_is_no_curve():
    assert spark(("x", [1.0]), scales_of([("x", [1.0])])) is None
