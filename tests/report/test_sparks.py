"""Small curves of many runs on one scale."""

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from sentinel.report.html.sparks import scales_of, spark
from sentinel.series.thumbnails import Lead, onset_in


def heights(curve):
    return [float(point.split(",")[1]) for point in curve.points.split()]


def test_noise_stays_small_beside_a_curve_that_moves():
    noise = Lead("train/loss", [1.0, 1.01, 0.99, 1.0, 1.01])
    falling = Lead("loss", [*np.linspace(5, 1, 50)])
    scales = scales_of([noise, falling])
    assert np.ptp(heights(spark(noise, scales))) < 1
    assert np.ptp(heights(spark(falling, scales))) > 15


def test_a_run_that_diverged_does_not_flatten_the_others():
    well = [Lead("loss", [*np.linspace(5, 1, 50)])] * 40
    scales = scales_of([*well, Lead("loss", [1.0, 1e30])])
    assert np.ptp(heights(spark(well[0], scales))) > 15


def test_a_scale_stays_while_the_values_move_a_little():
    before = scales_of([Lead("loss", [*np.linspace(5.03, 1.04, 50)])])
    assert scales_of([Lead("loss", [*np.linspace(5.03, 1.0401, 50)])]) == before


@pytest.mark.slow
@example([1.0, 1.0000000000000655e300])  # the next power of ten is no number
@example([0.0, 5e-324])  # half of the smallest number is 0
@given(st.lists(st.floats(allow_nan=False, allow_infinity=False), min_size=2, max_size=20))
def test_whatever_was_logged_lies_within_the_picture(values):
    curve = spark(Lead("x", values), scales_of([Lead("x", values)]))
    assert all(0 <= height <= 24 for height in heights(curve))
    assert 0 <= curve.top <= curve.top + curve.height <= 24.5


def test_one_value_is_no_curve():
    assert spark(Lead("x", [1.0]), scales_of([Lead("x", [1.0])])) is None


def test_a_tag_of_another_program_does_not_flatten_the_curve():
    small = Lead("loss", [*np.linspace(5, 1, 50)], "one")
    large = Lead("loss", [*np.linspace(5000, 1000, 50)], "another")
    assert np.ptp(heights(spark(small, scales_of([small, large])))) > 15


def test_from_three_decades_on_a_curve_is_drawn_by_its_logarithm():
    decades = Lead("loss", [10.0**-exponent for exponent in range(7)])
    curve = spark(decades, scales_of([decades]))
    assert "logarithmic" in curve.says
    assert np.diff(heights(curve))[1:-1] == pytest.approx(22 / 6, abs=0.2)
    below = Lead("loss", [*decades.values, 0.0])
    assert "logarithmic" not in spark(below, scales_of([below])).says


def test_the_onset_stands_where_the_trouble_begins():
    steps = [*range(0, 500, 10)]
    falls_at = 300
    values = [1.0 if step < falls_at else 0.0 for step in steps]
    lead = Lead("reward", values, onset=onset_in(steps, falls_at))
    curve = spark(lead, scales_of([lead]))
    first_low = next(p for p in curve.points.split() if float(p.split(",")[1]) > 12)
    assert curve.onset == pytest.approx(float(first_low.split(",")[0]), abs=0.1)
    assert onset_in(steps, 305) == onset_in(steps, 300) == 30
    assert onset_in(steps, -5) == 0
    assert onset_in(steps, None) is onset_in([], 3) is None
