"""A budget of pages from healthy runs is kept, and costs as few faults as it can."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sentinel.alerts.promise import Rate
from sentinel.replays.calibrating import Kind, Pages, kept_within

SPIKE, STALL, SHIFT = Kind("loss-spike", "single"), Kind("stream-stall", "silent"), Kind("drift", "slow")


def archive(healthy, others=()):
    """An archive of runs that paged for these kinds."""
    numbered = [{str(i): frozenset(kinds) for i, kinds in enumerate(runs)} for runs in (healthy, others)]
    return Pages(*numbered)


runs = st.lists(st.frozensets(st.sampled_from([SPIKE, STALL, SHIFT])), min_size=1, max_size=40)


@pytest.mark.long
@given(healthy=runs, others=runs, budget=st.floats(0.0, 1.0))
def test_the_budget_is_kept_and_no_kind_goes_twice(healthy, others, budget):
    pages = archive(healthy, others)
    moved = [move.kind for move in kept_within(budget, pages)]
    rate = pages.rate(moved)
    assert rate.pages <= budget * rate.runs
    assert len({*moved}) == len(moved)
    assert not moved or pages.rate(moved[:-1]).pages > budget * rate.runs, "none goes without need"


def test_what_is_within_the_budget_stays_as_it_is():
    assert kept_within(0.1, archive([[SPIKE], *[[]] * 9])) == []


def test_the_kind_goes_that_takes_no_fault_with_it():
    pages = archive([[SPIKE], [SPIKE], [SPIKE], [STALL], [], []], others=[[SPIKE], [STALL, SPIKE], [SPIKE]])
    (move, *_) = kept_within(0.5, pages)
    assert move.kind == STALL
    assert (move.rate, move.lost) == (Rate(1, 6), 0)


def test_two_kinds_in_one_run_both_go():
    moves = kept_within(0.0, archive([[SPIKE, STALL], []]))
    assert {move.kind for move in moves} == {SPIKE, STALL}


def test_a_rate_is_said_with_its_upper_bound():
    assert str(Rate(14, 812)) == "14 of 812 healthy runs (1.7%, at most 2.9%)"
