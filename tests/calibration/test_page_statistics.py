"""Which pages the runs of an archive would have sent, and how many that makes."""

from datetime import UTC, datetime

from msgspec.structs import replace

from sentinel.calibration.calibration import USEFUL, Calibration, PageSent
from sentinel.calibration.check import CalibrationCheck
from sentinel.calibration.page_rates import Rate
from sentinel.calibration.page_statistics import ArchivedRun, Pages, Stratum, Stricter
from sentinel.common.days import DAY_SECONDS
from sentinel.incidents.incident import Event
from sentinel.notifications.decide import PAGES, Decision, Reason
from sentinel.notifications.routing import SinkDecision
from sentinel.runs.log import RunOverview
from sentinel.runs.metadata import RunMetadata, Understanding
from tests.replays.paging import SHIFT, SPIKE, STALL, archived, daily, factored
from tests.sinks.samples import INCIDENT


def test_rates_are_told_by_what_runs_are_alike():
    pages = Pages({str(i): archived([SPIKE] * (i < 3), "trl" if i % 2 else "") for i in range(10)})
    assert pages.by_stratum() == {Stratum("", 100): Rate(2, 5), Stratum("trl", 100): Rate(1, 5)}
    assert pages.by_stratum([SPIKE])[Stratum("trl", 100)] == Rate(0, 5)


def test_kinds_are_counted_in_all_runs_and_in_those_that_are_alike():
    pages = Pages(
        {str(i): archived([SPIKE] if i < 3 else [STALL], "trl" if i % 2 else "") for i in range(10)}
    )
    assert pages.by_kind() == [(STALL, Rate(7, 10)), (SPIKE, Rate(3, 10))]
    assert pages.of_kind(SPIKE) == {Stratum("", 100): Rate(2, 5), Stratum("trl", 100): Rate(1, 5)}


def test_two_detectors_are_judged_apart_and_counted_together():
    run = replace(
        archived([SPIKE, SHIFT]),
        stricter={Stricter("loss-spike", 2.0): archived([SHIFT]), Stricter("drift", 2.0): archived([SPIKE])},
    )
    pages = factored([run])
    assert pages.rate([Stricter("loss-spike", 2.0)]).pages == 1
    assert pages.rate([Stricter("loss-spike", 2.0), Stricter("drift", 2.0)]).pages == 0


def test_days_that_page_less_often_count_less():
    pages = daily({0: [SPIKE], 1: [SPIKE], 5: [STALL]})
    (name,) = pages.healthy
    stricter = ArchivedRun({}, Stratum("", 100), days={1: frozenset({SPIKE}), 7: frozenset({SHIFT})})
    change = Stricter(SPIKE.detector, 2.0)
    pages.healthy[name] = replace(pages.healthy[name], stricter={change: stricter})
    assert pages.healthy[name].by_day([change]) == {
        0 + 100: frozenset(),
        1: frozenset({SPIKE}),
        7: frozenset({SHIFT}),
        101: frozenset(),
        105: frozenset({STALL}),
    }


BEGIN = 19_700  # a day
SPANS = [(BEGIN, BEGIN + 1), (BEGIN + 8, BEGIN + 9)]  # of a run that rested for six days


def at(day):
    """A time on a day of the run."""
    return (BEGIN + day) * DAY_SECONDS + 3600


def seen():
    """That run as a calibration sees it."""
    facts = RunMetadata(points=99, first_time=at(0), last_time=at(9), days=SPANS)
    return RunOverview("a", "/a", "jsonl", facts, None, 1, Understanding(None, {"kl": ["kl"]}, []), None)


def told(*pages):
    """What a sink was told of incidents, each given by its id, the day and the reason."""
    outcomes = {}
    for incident, day, reason in pages:
        about = INCIDENT.replace(id=incident, variant="far", last_time=at(day))
        outcomes.setdefault(incident, []).append(SinkDecision(about, "slack", Decision(Event.FIRING, reason)))
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
    promise = Calibration(
        made_at=datetime.fromtimestamp(at(0) - 9, UTC), pages_per_run_day=0.01, runs=1, run_days=9, pages=0
    )
    rate = CalibrationCheck.of(promise, {"a": seen().metadata.extent}, (), [*sent.values()]).rate
    if archive.healthy:
        assert archive.rate() == rate
    return archive, rate


FIRST = Reason.FIRST_NOTIFICATION
AGAIN = Reason.REOPENED


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
