"""What settings say of a run's length, and from which point on it counts."""

import numpy as np
import pytest

from detectors.signals import Signal
from sentinel.frames.plan import Plans, planned


@pytest.mark.parametrize(
    ("settings", "plan"),
    [
        ({"max_steps": 500, "warmup_steps": 50}, {"total_steps": 500, "warmup_steps": 50}),
        (
            {"trainer.max_steps": 500, "optim.sched.warmup_steps": "50"},
            {"total_steps": 500, "warmup_steps": 50},
        ),
        ({"scheduler.params.total_num_steps": 9e3}, {"total_steps": 9000}),
        ({"max_steps": -1, "warmup_steps": 0}, {}),
        ({"max_steps": "auto", "warmup_steps": None}, {}),
        ({"max_steps": True}, {}),
        ({"max_steps": float("inf"), "total_steps": float("nan")}, {}),
        ({"max_steps": 500, "total_steps": 600}, {}),
        ({"max_steps": 500, "total_steps": 500}, {"total_steps": 500}),
        ({"env.max_steps": 200, "behaviors.Ball.max_steps": 5e5, "max_steps_per_episode": 3}, {}),
        ({"max_steps": 10**400}, {}),
    ],
)
def test_only_what_plainly_is_the_plan_counts(settings, plan):
    assert planned(settings) == plan


def column(plans, signal, steps):
    found = plans.column(signal, np.arange(len(steps)), np.array(steps))
    return None if found is None else found.tolist()


def test_a_plan_holds_from_its_place_on():
    plans = Plans({"warmup_steps": 5.0})
    plans.hold(2, {"max_steps": 100, "warmup_steps": 7})
    assert column(plans, Signal.WARMUP_STEPS, [0, 1, 2, 3]) == [5, 5, 7, 7]
    assert np.isnan(column(plans, Signal.TOTAL_STEPS, [0, 1, 2, 3])[:2]).all()
    assert column(plans, Signal.TOTAL_STEPS, [0, 1, 2, 3])[2:] == [100, 100]
    assert column(plans, Signal.LOSS, [0]) is None
    assert column(Plans(), Signal.TOTAL_STEPS, [0]) is None


def test_a_plan_that_was_passed_is_none():
    assert np.isnan(column(Plans({"total_steps": 10.0}), Signal.TOTAL_STEPS, [9, 10, 11])).tolist() == [
        False,
        False,
        True,
    ]


def test_later_settings_change_only_what_they_name():
    plans = Plans()
    plans.hold(0, {"max_steps": 10, "warmup_steps": 2})
    plans.hold(3, {"max_steps": 20, "lr": 1})
    plans.hold(4, {"lr": 2})
    assert plans.now == {"total_steps": 20, "warmup_steps": 2}
    assert len(plans.later) == 2
    assert Plans(*plans.dump()).now == plans.now
