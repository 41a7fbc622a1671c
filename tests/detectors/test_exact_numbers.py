"""Numbers that rest to the last digit: losses of exactly 0, and rewards at their best."""

import numpy as np

from sentinel.detectors.api import Detector
from sentinel.detectors.discovery import all_detectors
from sentinel.detectors.schema import VARIANT
from sentinel.detectors.signals import Signal
from tests.detectors.golden import Stream, judge, windows

STEPS = np.arange(60)
ZEROS = np.r_[0.46, np.zeros(59)]
FALLS = 0.5 * np.exp(-STEPS / 10)


def variants(name, *streams):
    """The variants that a detector finds in some streams, in their order."""
    detector = all_detectors()[name]
    assert isinstance(detector, Detector)
    return judge(detector, windows(detector, streams)).drop_nulls(VARIANT)[VARIANT].to_list()


def test_a_loss_of_0_beside_held_out_losses_that_move_is_no_mean_without_nan():
    zeros = Stream(Signal.LOSS, STEPS, ZEROS)
    assert "zeros" in variants("non-finite-metric", zeros)
    assert variants("non-finite-metric", zeros, Stream(Signal.EVAL_LOSS, STEPS, FALLS)) == []
    rests = Stream(Signal.EVAL_LOSS, STEPS, np.full(60, 0.5))
    assert "zeros" in variants("non-finite-metric", zeros, rests)


def test_a_reward_that_began_with_a_rest_and_rests_at_its_best_is_solved():
    climbs = np.r_[np.full(40, 3.0), np.repeat(np.arange(3.0, 200.0), 2), np.full(1200, 223.0)]
    logged = Stream(Signal.REWARD, np.arange(len(climbs)), climbs)
    assert variants("reward-stagnation", logged)[-1] == "solved"
