"""How often a watch reads, by what reading costs."""

import pytest

from sentinel.watch.throttle import CPU_QUOTA, Throttle
from tests.manual_clock import ManualClock


def rounds(cost: float, wait: float = 0.5, seconds: float = 3600.0) -> tuple[ManualClock, list[float]]:
    """A watch whose rounds cost so much each, and its pauses."""
    clock = ManualClock()
    pauses = []
    pace = Throttle(clock)
    while clock.monotonic() < seconds:
        clock.work(cost)
        pauses.append(pace.pause_seconds())
        clock.advance(max(wait, pauses[-1]))
    return clock, pauses


def test_few_runs_are_read_at_once():
    _, pauses = rounds(cost=0.05)
    assert not any(pauses)


def test_many_runs_leave_the_machine_to_the_trainings():
    clock, pauses = rounds(cost=4.0)
    assert clock.cpu_seconds() / clock.monotonic() == pytest.approx(CPU_QUOTA, rel=0.05)
    assert max(pauses) < 20


def test_the_largest_fleets_are_read_nearly_each_minute():
    _, pauses = rounds(cost=40.0)
    assert max(pauses) == 30


def test_a_start_and_a_burst_of_logs_are_not_slowed():
    clock = ManualClock()
    pace = Throttle(clock)
    for _ in range(3):
        clock.work(10.0)
        assert pace.pause_seconds() == 0
        clock.advance(120)


def test_a_debt_ends_with_one_pause():
    clock = ManualClock()
    pace = Throttle(clock)
    clock.work(600.0)
    assert pace.pause_seconds() == 30
    clock.advance(30)
    assert pace.pause_seconds() == 0
