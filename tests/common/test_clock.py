"""The two times of a clock."""

from sentinel.common.clock import SystemClock
from tests.manual_clock import ManualClock


def test_time_that_passes_moves_both_and_a_jump_only_the_time_of_day():
    clock = ManualClock(1000.0)
    clock.advance(5)
    clock.jump(-300)
    assert (clock.now(), clock.monotonic()) == (705.0, 5.0)


def test_the_machine_never_goes_back():
    clock = SystemClock()
    before = clock.monotonic()
    assert clock.monotonic() >= before
