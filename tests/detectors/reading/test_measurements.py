"""Each measurement on a curve that somebody could draw; none depends on the curves beside it."""

import math

import numpy as np
import pytest

from sentinel.detectors.reading.curves import BLOCKS, Curves, curve_of, noise_of, together
from sentinel.detectors.reading.measurements import MEASUREMENTS
from tests.each import each

FLAT = np.full(40, 2.0)
RISES = np.linspace(0, 1, 40)
FALLS_BACK = np.r_[np.linspace(0, 1, 20), np.linspace(1, 0.5, 10), np.full(10, 0.5)]
HEALS = np.r_[np.linspace(0, 1, 16), np.full(8, 0.3), np.linspace(0.3, 1.5, 16)]
STANDS = np.r_[np.zeros(4), np.ones(36)]
LEAPS = np.tile([0.0, 1.0], 20)
NOISE = np.random.default_rng(0).normal(0, 1, 1600)
WAVE = 10 + np.sin(np.arange(40) / 3)

DRAWN = {
    "lost_of_gain": (FALLS_BACK, 0.5),
    "lost_of_range": (FALLS_BACK, 0.5),
    "lost_of_size": (FALLS_BACK, 0.5),
    "risen_of_best": (-1 - STANDS, None),
    "lost_in_scatters": (FLAT, 0.0),
    "lost_in_leaps": (FLAT, 0.0),
    "lost_in_points": (NOISE, 0.0),
    "low_for": (FALLS_BACK, 0.35),
    "longer_than_healed": (HEALS, -0.3),
    "below_start_for": (-STANDS, 0.9),
    "below_start": (-STANDS, 1.0),
    "below_start_of_range": (-STANDS, 1.0),
    "since_best": (FALLS_BACK, 0.45),
    "recovered": (FALLS_BACK, 0.0),
    "late_fall": (np.r_[np.ones(36), np.zeros(4)], 1.0),
    "grown": (1 + 9 * STANDS, 1.0),
    "above_best": (-1 - STANDS, None),
    "trend": (-RISES, -1.0),
    "late_trend": (FALLS_BACK, -0.94),
    "gain_by_half": (2 + RISES, 0.35),
    "gain_by_half_in_points": (NOISE, 0.0),
    "gain_by_half_in_scatters": (FLAT, 0.0),
    "gain_ever": (1 + STANDS, 1.0),
    "gain_ever_in_points": (NOISE, 0.04),
    "gain_of_thirds": (FLAT, 0.0),
    "gain_of_share": (STANDS, 1.0),
    "moved_of_share": (STANDS, 0.0),
    "no_better": (-RISES, 0.95),
    "at_start": (STANDS, 0.1),
    "range_of_size": (1 + STANDS, 0.5),
    "rests_low": (FLAT, 1.0),
    "late_range": (FLAT, 0.0),
    "off_guessing": (-np.full(40, math.log(10)), None),
    "off_coin": (-np.full(40, math.log(2)), None),
    "off_even": (-np.full(40, math.log(2)), None),
    "better_than_even": (-np.full(40, math.log(2)), None),
    "off_half": (np.r_[np.full(20, 0.5), np.full(20, 0.6)], 0.1),
    "late_share": (STANDS, 1.0),
    "swing": (LEAPS, 0.5),
    "swing_of_size": (WAVE, 0.06),
    "deepest_leap": (LEAPS, 1.0),
    "start_error": (LEAPS, 1.21),
    "noise_of_size": (FLAT, 0.0),
    "points": (NOISE, 3.2),
}
"""The rows of a series of which more is better, and the number; None if it cannot be measured."""

COSTS = {
    "risen_of_best": (1 + STANDS, 1.0),
    "above_best": (1 + 9 * STANDS, 1.0),
    "off_guessing": (np.full(40, math.log(10)), 0.0),
    "off_coin": (np.full(40, math.log(2)), 0.0),
    "off_even": (np.full(40, 2 * math.log(2)), 0.0),
    "better_than_even": (np.r_[np.full(10, 1.2), np.full(30, 2 * math.log(2))], 0.134),
    "off_half": (np.full(40, 0.3), 0.2),
    "gain_by_half": (-STANDS - 1, 1.0),  # a likelihood below zero
    "lost_of_gain": (-FALLS_BACK, 0.5),
}
"""The same of a series of which less is better."""


def measure(name, rows, higher_is_better):
    return float(MEASUREMENTS[name].measure(curve_of(rows, higher_is_better=higher_is_better))[0])


@each(MEASUREMENTS)
def test_a_drawn_curve_has_the_number_that_a_person_reads_off(name):
    rows, expected = DRAWN[name]
    value = measure(name, rows, higher_is_better=True)
    assert math.isnan(value) if expected is None else value == pytest.approx(expected, abs=0.03)


@each(COSTS)
def test_of_a_cost_less_is_better(name):
    rows, expected = COSTS[name]
    assert measure(name, rows, higher_is_better=False) == pytest.approx(expected, abs=0.03)


@each(MEASUREMENTS.values(), lambda one: one.name)
def test_a_measurement_has_a_unit_and_a_page_of_two_lines(one):
    summary, blank, *more = one.measure.__doc__.strip().split("\n")
    assert one.unit
    assert summary.startswith("Measure ")
    assert not blank.strip()
    assert more


@each(MEASUREMENTS)
def test_curves_do_not_depend_on_those_beside_them(name):
    rows = [FLAT, RISES, FALLS_BACK, LEAPS, np.full(40, 1e30), -np.full(40, 1e-30)]
    curves = [curve_of(one, higher_is_better=True) for one in rows]
    with np.errstate(all="ignore"):
        alone = [float(MEASUREMENTS[name].measure(one)[0]) for one in curves]
        beside = MEASUREMENTS[name].measure(together(curves)).tolist()
    assert beside == pytest.approx(alone, nan_ok=True, abs=1e-9)
    assert not np.isinf(beside).any()


@each([1, 2, 3, 5, 19, 20, 21, 64, 65, 1000], str)
def test_a_series_of_any_length_can_be_measured(count):
    rows = np.linspace(1, 2, count)
    for one in MEASUREMENTS.values():
        assert not np.isinf(one.measure(curve_of(rows, higher_is_better=True))).any()
        assert not np.isinf(one.measure(curve_of(rows, higher_is_better=False))).any()


def test_what_rises_along_lines_and_leaps_back_scatters_by_more_than_its_rounding():
    losses = np.array([1.0 + n % 7 / 10 for n in range(20)])
    for rows in losses, losses.astype(np.float32).astype(float):
        assert 0.05 < noise_of(rows) < 0.5


def test_the_scale_of_a_series_does_not_matter():
    rows = 3 + FALLS_BACK + np.random.default_rng(1).normal(0, 0.05, 40)
    absolute = {"late_share", "gain_of_share", "moved_of_share", "off_guessing", "off_coin"}
    free = [name for name in MEASUREMENTS if name not in absolute]
    plain = [measure(name, rows, True) for name in free]
    assert [measure(name, 1000 * rows, True) for name in free] == pytest.approx(plain, nan_ok=True)


@pytest.mark.slow
def test_a_trend_is_the_rank_correlation_with_time():
    from scipy.stats import spearmanr  # it takes a second to import

    blocks = np.random.default_rng(0).integers(0, 6, (20, BLOCKS)).astype(float)
    curves = Curves(blocks, np.zeros(20), np.full(20, float(BLOCKS)), is_cost=False)
    expected = [spearmanr(row, np.arange(BLOCKS)).statistic for row in blocks]
    np.testing.assert_allclose(MEASUREMENTS["trend"].of(curves), expected)
