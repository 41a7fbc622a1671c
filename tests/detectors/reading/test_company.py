"""Each measurement of a companion beside an outcome that rises to the middle of the run, and then falls."""

import numpy as np
import pytest

from sentinel.detectors.reading.company import COMPANY, largest
from sentinel.detectors.reading.curves import curve_of
from tests.each import each

OUTCOME = np.r_[np.linspace(0, 1, 20), np.linspace(1, 0, 20)]
FALLS = np.linspace(2, 1, 40)
TENFOLD = np.r_[np.ones(20), np.full(20, 10.0)]
HALF = np.full(40, 0.5)

DRAWN = {
    "training_loss_better_since_best": (FALLS, False, 0.3),
    "training_loss_worse_since_best": (FALLS, False, -0.3),
    "train_metric_better_since_best": (-FALLS, True, 0.3),
    "training_loss_better": (FALLS, False, 0.46),
    "train_metric_better": (-FALLS, True, 0.46),
    "held_out_loss_better": (FALLS, False, 0.46),
    "train_metric_rose": (HALF, True, 0.0),
    "metric_rose": (HALF, True, 0.0),
    "reward_rose": (HALF, True, 0.0),
    "metric_loses_gain": (OUTCOME, True, 0.95),
    "metric_gains_since_best": (np.linspace(0, 1, 40), True, 0.46),
    "reward_loses_gain": (OUTCOME, True, 0.95),
    "held_out_loss_loses_gain": (-OUTCOME, False, 0.95),
    "metric_keeps_gain": (OUTCOME, True, 0.03),
    "held_out_loss_keeps_gain": (FALLS, False, 1.0),
    "training_loss_keeps_gain": (FALLS, False, 1.0),
    "metric_holds_gain": (OUTCOME, True, 0.03),
    "train_metric_holds_gain": (OUTCOME, True, 0.03),
    "task_reward_stays": (FALLS, True, 0.55),
    "task_reward_trend": (FALLS, True, -1.0),
    "metric_share": (HALF, True, 0.5),
    "success_held": (HALF, True, 0.5),
    "metric_below_guess": (HALF, True, 0.97),
    "train_metric_below_guess": (HALF, True, 0.97),
    "training_loss_moved": (FALLS, False, 0.5),
    "training_loss_stands": (FALLS, False, 0.5),
    "train_metric_agrees": (HALF, True, 0.8),
    "reward_spread_ranks": (HALF, True, 0.0),
    "value_loss_excess": (TENFOLD, True, 1.0),
    "value_loss_peak": (np.r_[np.ones(39), 1000.0], True, 3.0),
    "grad_norm_peak": (np.r_[np.ones(39), 1000.0], True, 3.0),
    "policy_loss_growth": (TENFOLD, True, 1.0),
    "kl_growth": (TENFOLD, True, 1.0),
    "approx_kl_growth": (TENFOLD, True, 1.0),
    "grad_norm_growth": (TENFOLD, True, 1.0),
    "completion_length_growth": (TENFOLD, True, 1.0),
    "entropy_gone": (FALLS, True, 0.46),
    "kl_late": (TENFOLD, True, 1.0),
    "approx_kl_late": (TENFOLD, True, 1.0),
    "clip_fraction_level": (HALF, True, 0.5),
    "cut_completions_level": (HALF, True, 0.5),
    "groups_without_spread_level": (HALF, True, 0.5),
    "explained_variance_level": (HALF, True, 0.5),
    "learning_rate_left": (HALF, True, 1.0),
}


@each(COMPANY)
def test_a_drawn_companion_has_the_number_that_a_person_reads_off(name):
    rows, higher_is_better, expected = DRAWN[name]
    outcome = curve_of(OUTCOME, higher_is_better=True)
    companion = curve_of(rows, higher_is_better=higher_is_better)
    value = float(COMPANY[name].measure(outcome, companion)[0])
    assert value == pytest.approx(expected, abs=0.06), value


@each(COMPANY.values(), lambda one: one.name)
def test_a_measurement_has_a_unit_and_a_page_of_two_lines(one):
    assert one.unit
    assert one.measure.__doc__.strip().startswith("Measure ")
    assert one.measure.__doc__.strip().count("\n") >= 2


def test_a_metric_that_is_poor_in_itself_gains_nothing():
    poor = curve_of(np.linspace(0, 0.4, 40), higher_is_better=True)
    outcome = curve_of(OUTCOME, higher_is_better=True)
    assert np.isnan(COMPANY["metric_gains_since_best"].measure(outcome, poor)[0])


def test_of_several_companions_the_largest_counts():
    assert largest({1: 0.5, 2: float("nan"), 3: 0.2}) == 0.5
    assert np.isnan(largest({}))


def test_a_mean_that_never_moves_beside_a_spread_is_of_a_ranking():
    still = curve_of(HALF, higher_is_better=True)
    measure = COMPANY["reward_spread_ranks"].measure
    assert measure(still, still) == 1.0
    assert measure(still, curve_of(np.zeros(40), higher_is_better=True)) == 0.0
