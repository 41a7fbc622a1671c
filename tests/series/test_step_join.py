"""Points of the same step find each other, and what waits is bounded."""

import numpy as np
import pytest

from sentinel.detectors.signals import Signal
from sentinel.series.attempts import Points
from sentinel.series.step_join import REACH, Join


def points(tag, steps, begin=0):
    steps = np.asarray(steps, np.int64)
    return Points(tag, Signal.LOSS, steps, steps * 0.0, begin + np.arange(len(steps)), steps * 1.0)


@pytest.mark.slow
@pytest.mark.parametrize("partner", ["", "b"])
def test_what_waits_for_a_partner_that_never_comes_is_bounded(partner):
    join = Join({"b": points("b", [0])} if partner else {})
    for begin in range(1, 100_000, 1000):
        join.extend(["a", partner], {"a": points("a", range(begin, begin + 1000), begin)})
    assert sum(len(waiting) for waiting in join.waiting.values()) <= 2 * (REACH + 1)


def test_a_partner_that_comes_late_finds_what_still_waits():
    join = Join()
    last = 2 * REACH
    assert join.extend(["a", ""], {"a": points("a", range(last))}) is None
    complete, (beside,) = join.extend(["a", "b"], {"b": points("b", range(last), last)})
    assert complete.step[[0, -1]].tolist() == [last - REACH, last - 1]
    assert (beside == complete.step).all()


def test_the_last_partner_gives_the_position():
    join = Join()
    join.extend(["a", "b"], {"a": points("a", [0, 1, 2])})
    complete, _ = join.extend(["a", "b"], {"b": points("b", [1, 2], 3)})
    assert list(zip(complete.step.tolist(), complete.position.tolist(), strict=True)) == [(1, 3), (2, 4)]
