"""A budget of pages from healthy runs is kept, and costs as few faults as it can."""

from dataclasses import replace
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sentinel.alerts.decision import PAGES, Decision, Reason
from sentinel.alerts.incident import Event
from sentinel.alerts.outcomes import Outcome
from sentinel.alerts.promise import USEFUL, PageSent, Promise
from sentinel.alerts.rates import Rate
from sentinel.alerts.realised import Realised
from sentinel.ground.days import DAY_SECONDS
from sentinel.replays.calibrating import (
    ArchivedRun,
    Kind,
    Pages,
    Stratum,
    cross_fitted,
    drifted,
    kept_within,
    promised,
)
from sentinel.report.doubtful import doubtful
from sentinel.runs.facts import Facts, Understanding
from sentinel.runs.log import RunOverview
from tests.sinks.samples import INCIDENT

SPIKE, STALL, SHIFT = Kind("loss-spike", "single"), Kind("stream-stall", "silent"), Kind("drift", "slow")


def archive(healthy, others=()):
    """An archive of runs that paged for these kinds."""
    return Pages(*({str(i): archived(kinds) for i, kinds in enumerate(runs)} for runs in (healthy, others)))


def archived(kinds, framework="", ended_at=None):
    return ArchivedRun(dict.fromkeys(kinds, INCIDENT), Stratum(framework, 100), ended_at)


runs = st.lists(st.frozensets(st.sampled_from([SPIKE, STALL, SHIFT])), min_size=1, max_size=40)


@pytest.mark.long
@given(healthy=runs, others=runs, budget=st.floats(0.0, 1.0))
def test_the_budget_is_kept_and_no_kind_goes_twice(healthy, others, budget):
    pages = archive(healthy, others)
    moved = [move.kind for move in kept_within(budget, pages)]
    rate = pages.rate(moved)
    assert rate.pages <= budget * rate.units
    assert len({*moved}) == len(moved)
    assert not moved or pages.rate(moved[:-1]).pages > budget * rate.units, "none goes without need"


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


def test_rates_are_told_by_what_runs_are_alike():
    pages = Pages({str(i): archived([SPIKE] * (i < 3), "trl" if i % 2 else "") for i in range(10)})
    assert pages.by_stratum() == {Stratum("", 100): Rate(2, 5), Stratum("trl", 100): Rate(1, 5)}
    assert pages.by_stratum([SPIKE])[Stratum("trl", 100)] == Rate(0, 5)


def test_the_halves_of_an_archive_are_those_of_its_time():
    pages = Pages({str(i): archived([SPIKE] * (i > 6), ended_at=float(i)) for i in reversed(range(10))})
    assert not drifted(*pages.halves())
    pages.healthy["untimed"] = archived([SPIKE])
    assert pages.halves() == (Rate(0, 5), Rate(3, 5))


def test_halves_that_page_differently_are_a_drift_whichever_pages_more():
    few, many = Rate(1, 200), Rate(20, 200)
    assert drifted(few, many)
    assert drifted(many, few)
    assert not drifted(many, many)


def test_the_doubtful_pages_come_from_each_kind_in_turn_and_are_asked_once():
    pages = archive([[SPIKE, STALL], [SPIKE], [SPIKE], [STALL], []])
    named = [(name, run.paged) for name, run in pages.healthy.items()]
    pages.healthy = {
        name: ArchivedRun(
            {kind: replace(INCIDENT, id=f"{name}-{kind.detector}") for kind in paged}, Stratum("", 100)
        )
        for name, paged in named
    }
    moves = kept_within(0.4, pages)
    first, second, *rest = (incident.id for _, incident in doubtful(pages, moves, ()))
    assert moves[0].kind == SPIKE
    assert (first, second) == ("1-loss-spike", "3-stream-stall"), "alone in its run comes first"
    assert {*rest} == {"0-loss-spike", "0-stream-stall", "2-loss-spike"}
    assert [one.id for _, one in doubtful(pages, moves, {first}, most=1)] == ["2-loss-spike"]


def test_kinds_are_counted_in_all_runs_and_in_those_that_are_alike():
    pages = Pages(
        {str(i): archived([SPIKE] if i < 3 else [STALL], "trl" if i % 2 else "") for i in range(10)}
    )
    assert pages.by_kind() == [(STALL, Rate(7, 10)), (SPIKE, Rate(3, 10))]
    assert pages.of_kind(SPIKE) == {Stratum("", 100): Rate(2, 5), Stratum("trl", 100): Rate(1, 5)}


def test_a_promise_does_not_rest_on_the_runs_by_which_it_was_chosen():
    """Twenty kinds that page in one run each: none of them foretells the next one."""
    kinds = [Kind("loss-spike", str(number)) for number in range(20)]
    pages = archive([*([kind] for kind in kinds), *[[]] * 80])
    assert pages.rate({move.kind for move in kept_within(0.0, pages)}) == Rate(0, 100)
    promise = promised(0.0, pages, 1.7e9)
    assert (promise.since, promise.rate) == (1.7e9, Rate(20, 100))


def daily(*runs):
    """An archive of runs of ten days, each given as the kinds that page on its days."""
    days = [{100 + day: frozenset(kinds) for day, kinds in run.items()} for run in runs]
    return Pages(
        {
            str(at): ArchivedRun({}, Stratum("", 100), 109.5 * 86400, range(100, 110), of)
            for at, of in enumerate(days)
        },
        daily=True,
    )


def test_of_runs_without_end_their_days_count():
    pages = daily({0: [SPIKE], 1: [SPIKE, STALL], 5: [STALL]}, {}, {2: [STALL]})
    assert pages.rate() == Rate.of_days([(3, 10), (0, 10), (1, 10)])
    spikes, stalls = Rate.of_days([(2, 10), (0, 10), (0, 10)]), Rate.of_days([(2, 10), (0, 10), (1, 10)])
    assert pages.by_kind() == [(STALL, stalls), (SPIKE, spikes)]
    assert kept_within(0.2, pages) == []
    (move,) = kept_within(0.1, pages)
    assert (move.kind, move.rate) == (STALL, stalls)
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


BEGIN = 19_700  # a day
SPANS = [(BEGIN, BEGIN + 1), (BEGIN + 8, BEGIN + 9)]  # of a run that rested for six days


def at(day):
    """A time on a day of the run."""
    return (BEGIN + day) * DAY_SECONDS + 3600


def seen():
    """That run as a calibration sees it."""
    facts = Facts(points=99, first_time=at(0), last_time=at(9), days=SPANS)
    return RunOverview("a", "/a", "jsonl", facts, None, 1, Understanding(None, {"kl": ["kl"]}, []), None)


def told(*pages):
    """What a sink was told of incidents, each given by its id, the day and the reason."""
    outcomes = {}
    for incident, day, reason in pages:
        about = replace(INCIDENT, id=incident, variant="far", last_time=at(day))
        outcomes.setdefault(incident, []).append(Outcome(about, "slack", Decision(Event.FIRING, reason)))
    return outcomes


def both(pages, answers):
    """How often the days of the run page in an archive, and how often in a watch: the same."""
    archive = Pages(daily=True)
    archive.add(seen(), told(*pages), (), answers)
    sent = {
        (incident, day): PageSent("a", incident, "kl-blowup", "far", at(day), answers.get(incident, ""))
        for incident, day, reason in pages
        if reason in PAGES
    }
    promise = Promise(
        made_at=datetime.fromtimestamp(at(0) - 9, UTC), pages_per_run_day=0.01, runs=1, run_days=9, pages=0
    )
    rate = Realised.of(promise, {"a": seen().facts.extent}, (), [*sent.values()]).rate
    if archive.healthy:
        assert archive.rate() == rate
    return archive, rate


FIRST, AGAIN = Reason.FIRST_NOTIFICATION, Reason.REOPENED


def test_pauses_are_no_days_of_a_run():
    assert both([], {})[1] == Rate(0, 4, "run-day")


def test_what_comes_back_on_a_later_day_pages_on_that_day_as_well():
    life = [("x", 1, FIRST), ("x", 1, AGAIN), ("x", 8, Reason.RESOLVED), ("x", 9, AGAIN)]
    assert both(life, {})[1] == Rate.of_days([(2, 4)])


def test_a_page_that_was_right_takes_out_the_days_on_which_it_came():
    pages = [("right", 1, FIRST), ("right", 9, AGAIN), ("other", 9, FIRST), ("other", 8, AGAIN)]
    archive, rate = both(pages, {"right": USEFUL})
    assert rate == Rate(1, 2, "run-day")
    assert archive.others["a"].days.keys() == {BEGIN + 1, BEGIN + 9}
    assert archive.left_out == "0 other runs and 2 run-days"


def test_a_run_of_which_each_day_went_wrong_is_not_healthy():
    archive, rate = both([("right", day, AGAIN) for day in (0, 1, 8, 9)], {"right": USEFUL})
    assert (rate.units, [*archive.healthy], archive.left_out) == (0, [], "1 other run")


def test_where_runs_count_a_page_that_was_right_takes_out_its_run():
    archive = Pages()
    archive.add(seen(), told(("right", 1, FIRST), ("other", 9, FIRST)), (), {"right": USEFUL})
    assert ([*archive.healthy], [*archive.others]) == ([], ["a"])
