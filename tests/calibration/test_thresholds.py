"""A budget of pages from healthy runs is kept, and costs as few faults as it can."""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sentinel.calibration.page_rates import Rate
from sentinel.calibration.page_statistics import ArchivedRun, Kind, Pages, Stratum, Stricter
from sentinel.calibration.thresholds import (
    changes_of,
    cross_fitted,
    drifted,
    judge_stricter,
    kept_within,
    promised,
)
from sentinel.detectors.strictness import FACTORS
from sentinel.report.review_queue import doubtful
from tests.replays.paging import FAR, SHIFT, SPIKE, STALL, archive, archived, daily, factored, with_factors
from tests.sinks.samples import INCIDENT

runs = st.lists(st.frozensets(st.sampled_from([SPIKE, STALL, SHIFT])), min_size=1, max_size=40)


@pytest.mark.long
@given(healthy=runs, others=runs, budget=st.floats(0.0, 1.0))
def test_the_budget_is_kept_and_no_kind_goes_twice(healthy, others, budget):
    pages = archive(healthy, others)
    moved = [move.change for move in kept_within(budget, pages)]
    rate = pages.rate(moved)
    assert rate.pages <= budget * rate.units
    assert len({*moved}) == len(moved)
    assert not moved or pages.rate(moved[:-1]).pages > budget * rate.units, "none goes without need"


kinds_left = st.frozensets(st.sampled_from([SPIKE, STALL, SHIFT]))
factored_runs = st.lists(
    st.builds(with_factors, kinds_left, st.fixed_dictionaries(dict.fromkeys(FACTORS, kinds_left))),
    min_size=1,
    max_size=20,
)


@pytest.mark.long
@given(healthy=factored_runs, others=factored_runs, budget=st.floats(0.0, 1.0))
def test_the_budget_is_kept_with_stricter_detectors_whatever_they_hide(healthy, others, budget):
    pages = factored(healthy, others)
    moved = [move.change for move in kept_within(budget, pages)]
    rate = pages.rate(moved)
    assert rate.pages <= budget * rate.units
    assert len({change.detector for change in moved if isinstance(change, Stricter)}) == sum(
        isinstance(change, Stricter) for change in moved
    )
    for change in moved:
        assert pages.rate([one for one in moved if one != change]).pages > budget * rate.units, "needless"


QUIET_FROM = dict.fromkeys(FACTORS, ()) | {1.2: (SPIKE,), 1.5: (SPIKE,)}  # pages until it is twice as strict
NEVER_QUIET = dict.fromkeys(FACTORS, (SPIKE,))


def test_a_detector_becomes_as_strict_as_the_budget_needs_and_not_stricter():
    healthy = [with_factors([SPIKE], QUIET_FROM), *[archived([])] * 9]
    faulty = [with_factors([SPIKE], NEVER_QUIET | {3.0: ()})]
    (move,) = kept_within(0.0, factored(healthy, faulty))
    assert move.change == Stricter("loss-spike", 2.0)
    assert (move.rate, move.now, move.lost) == (Rate(1, 10), Rate(0, 10), 0)


def test_a_kind_only_informs_where_no_factor_keeps_the_budget():
    healthy = [with_factors([SPIKE], QUIET_FROM), with_factors([SPIKE], NEVER_QUIET), archived([])]
    assert changes_of(kept_within(0.34, factored(healthy))) == {Stricter("loss-spike", 2.0)}
    assert changes_of(kept_within(0.0, factored(healthy))) == {SPIKE}, "the factor is taken back"


def test_a_factor_that_takes_more_faults_than_a_quiet_variant_is_not_chosen():
    other = Kind(SPIKE.detector, "many")
    healthy = [with_factors([SPIKE], dict.fromkeys(FACTORS, ())), archived([])]
    faulty = [with_factors([other], dict.fromkeys(FACTORS, ()))] * 3
    (move,) = kept_within(0.0, factored(healthy, faulty))
    assert (move.change, move.lost) == (SPIKE, 0)


def test_what_a_stricter_detector_had_explained_pages_and_counts():
    hidden = [with_factors([SPIKE], dict.fromkeys(FACTORS, (STALL,))), archived([])]
    pages = factored(hidden)
    assert pages.rate([Stricter("loss-spike", 2.0)]) == Rate(1, 2)
    assert changes_of(kept_within(0.0, pages)) == {SPIKE}


def test_only_what_paged_is_judged_with_factors():
    pages = archive([[FAR], [], [FAR, STALL]], [[FAR]])
    requests = []
    judge_stricter(pages, lambda change, names: requests.append((change, names)) or ())
    assert requests == [(Stricter("kl-blowup", factor), ["0", "2"]) for factor in FACTORS]


def test_of_very_many_runs_that_paged_an_even_choice_is_judged_with_factors():
    pages = archive([[FAR]] * 2500)
    requests = []
    judge_stricter(pages, lambda _, names: requests.append(names) or ())
    assert {len(set(names)) for names in requests} == {1000}
    places = sorted(sorted(pages.healthy).index(name) for name in requests[0])
    assert {later - earlier for earlier, later in pairwise(places)} == {2, 3}


def test_what_is_within_the_budget_stays_as_it_is():
    assert kept_within(0.1, archive([[SPIKE], *[[]] * 9])) == []


def test_the_kind_goes_that_takes_no_fault_with_it():
    pages = archive([[SPIKE], [SPIKE], [SPIKE], [STALL], [], []], others=[[SPIKE], [STALL, SPIKE], [SPIKE]])
    (move, *_) = kept_within(0.5, pages)
    assert move.change == STALL
    assert (move.rate, move.lost) == (Rate(1, 6), 0)


def test_two_kinds_in_one_run_both_go():
    moves = kept_within(0.0, archive([[SPIKE, STALL], []]))
    assert {move.change for move in moves} == {SPIKE, STALL}


def test_a_rate_is_said_with_its_upper_bound():
    assert str(Rate(14, 812)) == "14 of 812 healthy runs (1.7%, at most 2.9%)"


def test_the_halves_of_an_archive_are_those_of_its_time():
    pages = Pages({str(i): archived([SPIKE] * (i > 6), ended_at=float(i)) for i in reversed(range(10))})
    assert not drifted(*pages.halves())
    pages.healthy["untimed"] = archived([SPIKE])
    assert pages.halves() == (Rate(0, 5), Rate(3, 5))


def test_halves_that_page_differently_are_a_drift_whichever_pages_more():
    few = Rate(1, 200)
    many = Rate(20, 200)
    assert drifted(few, many)
    assert drifted(many, few)
    assert not drifted(many, many)


def test_the_doubtful_pages_come_from_each_kind_in_turn_and_are_asked_once():
    pages = archive([[SPIKE, STALL], [SPIKE], [SPIKE], [STALL], []])
    paged_by_name = [(name, run.paged) for name, run in pages.healthy.items()]
    pages.healthy = {
        name: ArchivedRun(
            {kind: INCIDENT.replace(id=f"{name}-{kind.detector}") for kind in paged}, Stratum("", 100)
        )
        for name, paged in paged_by_name
    }
    moves = kept_within(0.4, pages)
    first, second, *rest = (incident.id for _, incident in doubtful(pages, moves, ()))
    assert moves[0].change == SPIKE
    assert (first, second) == ("1-loss-spike", "3-stream-stall"), "alone in its run comes first"
    assert {*rest} == {"0-loss-spike", "0-stream-stall", "2-loss-spike"}
    assert [one.id for _, one in doubtful(pages, moves, {first}, max_pages=1)] == ["2-loss-spike"]


def test_a_promise_does_not_rest_on_the_runs_by_which_it_was_chosen():
    """Twenty kinds that page in one run each: none of them foretells the next one."""
    kinds = [Kind("loss-spike", str(number)) for number in range(20)]
    pages = archive([*([kind] for kind in kinds), *[[]] * 80])
    assert pages.rate({move.change for move in kept_within(0.0, pages)}) == Rate(0, 100)
    promise = promised(0.0, pages, 1.7e9)
    assert (promise.since, promise.rate) == (1.7e9, Rate(20, 100))


def test_of_runs_without_end_their_days_count():
    pages = daily({0: [SPIKE], 1: [SPIKE, STALL], 5: [STALL]}, {}, {2: [STALL]})
    assert pages.rate() == Rate.of_days([(3, 10), (0, 10), (1, 10)])
    spikes = Rate.of_days([(2, 10), (0, 10), (0, 10)])
    stalls = Rate.of_days([(2, 10), (0, 10), (1, 10)])
    assert pages.by_kind() == [(STALL, stalls), (SPIKE, spikes)]
    assert kept_within(0.2, pages) == []
    (move,) = kept_within(0.1, pages)
    assert (move.change, move.rate) == (STALL, stalls)
    promise = promised(0.1, pages, 1.7e9)
    assert (promise.budget, promise.run_days, promise.variants) == (0.1, 30, {"loss-spike: single": 2})
    assert promise.rate == Rate(4, 30, "run-day", 2.5)
    assert promise.design_effects == {"loss-spike: single": 2.5}


@pytest.mark.slow
@given(healthy=runs, budget=st.floats(0.0, 1.0))
def test_every_run_is_judged_once_by_the_others(healthy, budget):
    rate = cross_fitted(budget, archive(healthy))
    assert rate.units == len(healthy)
    assert rate.pages <= sum(map(bool, healthy))
