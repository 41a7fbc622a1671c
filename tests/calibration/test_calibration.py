"""What came of a promise is counted by runs, and its breach is told when chance does not explain it."""

from datetime import UTC, datetime

import numpy as np
import pytest
from msgspec.structs import replace

from sentinel.calibration.calibration import Calibration, PageSent, variants
from sentinel.calibration.check import CalibrationCheck, Ledger
from sentinel.calibration.page_rates import Rate
from sentinel.common.days import Extent
from sentinel.detectors.api import Severity
from sentinel.notifications.decide import Decision, Event, Reason
from sentinel.notifications.routing import SinkDecision
from sentinel.storage.store import Store, Update
from tests.sinks.samples import INCIDENT

MADE = 1.7e9
DAY = 86400.0
BODY = {"event": Event.FIRING, "key": "a key"}
PROMISE = Calibration(made_at=datetime.fromtimestamp(MADE, UTC), pages_per_run=0.01, runs=340, pages=0)


def realised(runs, pages, crashed=()):
    """What comes of the promise in runs of a day, numbered from 0."""
    extents = {str(number): Extent(MADE, MADE + DAY) for number in range(runs)}
    return CalibrationCheck.of(PROMISE, extents, crashed, pages)


def sent(run, verdict="", detector="kl-blowup"):
    return PageSent(str(run), f"of {run}", detector, "far", MADE + 60, verdict)


def test_a_rate_has_the_exact_interval():
    rate = Rate(14, 812)
    assert (round(rate.low, 4), round(rate.high, 4)) == (0.0095, 0.0288)
    assert (Rate(0, 9).low, Rate(9, 9).high, Rate(0, 0).share) == (0.0, 1.0, 0.0)


def test_days_of_which_each_run_has_as_many_as_chance_gives_are_independent_ones():
    assert Rate.of_days([(1, 10)] * 20) == Rate(20, 200, "run-day")
    assert Rate.of_days([(0, 10)] * 20) == Rate(0, 200, "run-day")
    assert Rate.of_days([(10, 10)]) == Rate(10, 10, "run-day")


def test_days_that_page_together_tell_no_more_than_one_of_them():
    assert Rate.of_days([(4, 400)]) == Rate(4, 400, "run-day", 4.0)
    assert Rate.of_days([(4, 10), *[(0, 10)] * 39]).high == pytest.approx(Rate(1, 100).high)


def test_few_runs_tell_little_of_how_their_days_depend():
    days = [(2, 100), (2, 100), (1, 100), (0, 100)]
    assert Rate.of_days(days).design_effect > Rate.of_days(days * 9).design_effect == 1.0


def independent(random, runs):
    """How many of 12 days page in each run, at 2 %, and the share."""
    return random.binomial(12, 0.02, runs), 0.02


def uneven(random, runs):
    """The same at 10 % in every fifth run."""
    return random.binomial(12, np.where(random.random(runs) < 0.2, 0.1, 0.0)), 0.02


def returning(random, runs):
    """The same where an incident begins on 1 % of the days, and comes back on each second day afterwards."""
    days = random.random((runs, 60)) < 0.01
    for day in range(1, 60):
        days[:, day] |= days[:, day - 1] & (random.random(runs) < 0.5)
    return days[:, -12:].sum(axis=1), 0.01 / 0.505


@pytest.mark.long
@pytest.mark.parametrize("fleet", [independent, uneven, returning])
def test_the_interval_holds_the_share_however_days_of_a_run_depend(fleet):
    random = np.random.default_rng(0)
    fleets = [fleet(random, 100) for _ in range(1000)]
    rates = [(Rate.of_days([(int(pages), 12) for pages in paged]), share) for paged, share in fleets]
    assert np.mean([rate.low <= share <= rate.high for rate, share in rates]) > 0.94
    alone = [(replace(rate, design_effect=1.0), share) for rate, share in rates]
    holds = np.mean([rate.low <= share <= rate.high for rate, share in alone])
    assert bool(holds < 0.92) is (fleet is not independent)


def test_a_promise_is_the_budget_or_what_so_few_runs_prove():
    assert PROMISE.highest == pytest.approx(0.0108, abs=1e-4)
    assert PROMISE.model_copy(update={"pages_per_run": 0.05}).highest == 0.05


def test_the_limit_of_a_variant_is_none_above_that_of_the_whole():
    wide = PROMISE.model_copy(update={"pages_per_run": 0.2, "variants": {"kl-blowup: far": 3}})
    assert wide.highest > wide.highest_of("kl-blowup: far") > Rate(3, 340).high
    assert PROMISE.highest_of("kl-blowup: far") == PROMISE.highest


@pytest.mark.slow
def test_the_limits_of_all_variants_hold_together():
    """All page in 5 % of the runs: by chance one or another hardly does, and its limit is right as well."""
    share = 0.05
    many = variants()
    archives = np.random.default_rng(0).binomial(340, share, (200, many)).min(axis=1).tolist()
    assert np.mean([Rate(quietest, 340).high_of(many) >= share for quietest in archives]) > 0.975
    assert np.mean([Rate(quietest, 340).high >= share for quietest in archives]) < 0.5


def test_answers_break_a_promise_once_chance_does_not_explain_them():
    few, many = ([sent(run, "false-alarm") for run in range(count)] for count in (1, 9))
    assert realised(100, few).advice == ""
    assert realised(100, many).advice == "recalibrate: 9 false of 9 answers"


def test_pages_without_an_answer_are_asked_for():
    check = realised(100, [sent(run) for run in range(9)])
    assert not check.broken
    assert "if 9 pages without an answer were false, recalibrate" in check.advice


def test_runs_that_went_wrong_are_no_healthy_ones():
    check = realised(10, [sent(0, "useful"), sent(1), sent(2, "false-alarm")], crashed=["1"])
    assert (check.runs, check.paged, check.false, check.pages) == (8, 1, 1, 3)
    assert check.answers == {"useful": 1, "false-alarm": 1}


def test_a_run_went_wrong_if_an_incident_was_called_useful_that_was_not_sent():
    extents = {"0": Extent(MADE, MADE + DAY), "1": Extent(MADE, MADE + DAY)}
    assert CalibrationCheck.of(PROMISE, extents, (), [sent(0)], useful=["0"]).rate == Rate(0, 1)
    assert CalibrationCheck.of(DAILY, extents, (), [sent(0)], useful=["0"]).rate == Rate(1, 4, "run-day")


def test_what_checks_of_the_run_find_is_no_page_of_thresholds():
    assert realised(10, [sent(0, detector="run-crashed"), sent(1, detector="a rule of one's own")]).pages == 0


def test_only_what_a_run_wrote_since_counts():
    extents = {
        "over": Extent(MADE - 3 * DAY, MADE - DAY),
        "on": Extent(MADE - DAY, MADE + DAY),
        "untimed": Extent(),
    }
    check = CalibrationCheck.of(PROMISE, extents, (), [sent("over"), sent("gone")])
    assert (check.runs, check.pages, check.run_days) == (2, 0, 2)


def test_a_promise_and_what_came_of_it_is_said():
    check = realised(100, [*(sent(run, "false-alarm") for run in range(9)), sent(9, "useful")])
    assert check.lines() == [
        "promised: at most 1.1% of healthy runs page (1.0% allowed): when left out, 0 of 340 healthy runs "
        "(0.0%, at most 1.1%) did",
        "realised: 9 of 99 healthy runs (9.1%, at most 16.6%); 10 pages, 0.05 a run-day; 9 false of 10 "
        "answers",
        "recalibrate: 9 false of 10 answers",
    ]


DAILY = Calibration(
    made_at=datetime.fromtimestamp(MADE, UTC),
    pages_per_run_day=0.01,
    runs=10,
    run_days=1000,
    pages=2,
    variants={"kl-blowup: far": 2},
)


def on_days(run, days, verdict="false-alarm", variant="far", at=(0.0, 0.01)):
    """Pages of a run on some days since the promise, two a day."""
    return [
        PageSent(run, f"{run} {day} {hour}", "kl-blowup", variant, MADE + (day + hour) * DAY, verdict)
        for day in days
        for hour in at
    ]


def test_of_a_run_without_end_its_days_count_and_each_once():
    endless = {"a": Extent(MADE, MADE + 99 * DAY), "b": Extent(MADE - DAY, MADE + 99 * DAY)}
    check = CalibrationCheck.of(DAILY, endless, (), on_days("a", [3, 7]))
    assert (check.rate, check.pages) == (Rate.of_days([(2, 100), (0, 100)]), 4)
    assert check.advice == ""
    assert check.lines()[0] == (
        "promised: at most 1.0% of healthy run-days page (1.0% allowed): when left out, 2 of 1,000 healthy "
        "run-days (0.2%, at most 0.7%) did"
    )


def test_a_day_without_points_is_no_run_day_and_its_page_belongs_to_the_last_one_before():
    made = int(MADE // DAY)
    resumed = {"a": Extent(MADE, MADE + 90 * DAY, [(made, made + 4), (made + 89, made + 90)])}
    assert CalibrationCheck.of(DAILY, resumed, (), on_days("a", [4, 30])).rate == Rate(1, 7, "run-day")


def test_a_page_that_was_right_takes_a_day_of_a_run_without_end_out_of_the_account_and_not_the_run():
    endless = {"a": Extent(MADE, MADE + 99 * DAY)}
    check = CalibrationCheck.of(DAILY, endless, (), [*on_days("a", [3, 50]), *on_days("a", [50], "useful")])
    assert check.rate == Rate(1, 99, "run-day")


def test_an_answer_is_one_however_often_its_incident_came_back():
    endless = {"a": Extent(MADE, MADE + 99 * DAY)}
    pages = [replace(page, incident="x") for page in on_days("a", [3, 50, 60], at=[0.0])]
    check = CalibrationCheck.of(DAILY, endless, (), [*pages, *on_days("a", [70, 71], "")])
    assert (check.rate.pages, check.pages, check.unanswered, check.answers) == (5, 7, 4, {"false-alarm": 1})


def coming_back(seed, runs=20, days=400):
    """Pages on 1 % of the days of healthy runs; every second one is a return of the day before."""
    random = np.random.default_rng(seed)
    pages = []
    for run in range(runs):
        incident = ""
        for day in range(days):
            if not incident or random.random() < 0.5:
                incident = f"{run} {day}" if random.random() < 0.005 / 0.99 else ""
            if incident:
                pages.append(
                    PageSent(str(run), incident, "kl-blowup", "far", MADE + day * DAY, "false-alarm")
                )
    return Ledger(DAILY, {str(run): Extent(MADE, MADE + (days - 1) * DAY) for run in range(runs)}), pages


@pytest.mark.long
def test_what_keeps_coming_back_counts_in_the_rate_and_breaks_no_promise():
    fleets = [coming_back(seed) for seed in range(40)]
    assert np.mean([ledger.rate(pages).share for ledger, pages in fleets]) == pytest.approx(0.01, rel=0.1)
    assert not any(ledger.beyond(pages)[0] for ledger, pages in fleets)
    each = [
        (ledger, [replace(page, incident=str(at)) for at, page in enumerate(pages)])
        for ledger, pages in fleets
    ]
    assert sum(ledger.beyond(pages)[0] for ledger, pages in each) > 4, "with each day as evidence"


def test_a_variant_that_pages_more_often_than_in_the_archive_is_named():
    endless = {str(run): Extent(MADE, MADE + 99 * DAY) for run in range(5)}
    loud = [page for run in endless for page in on_days(run, range(60, 70))]
    check = CalibrationCheck.of(DAILY, endless, (), [*loud, *on_days("1", [2], variant="gone")])
    assert check.broken
    assert check.advice == "recalibrate: 102 false of 102 answers, more than promised of kl-blowup: far"


def test_looking_every_day_does_not_break_a_promise_by_chance():
    """A share of 1 % is kept, of which an interval of 95 % would be left sooner or later."""
    random = np.random.default_rng(0)
    extents = {str(run): Extent(MADE + run * DAY / 4, MADE + run * DAY / 4 + 60) for run in range(1200)}
    pages = [sent(run, "false-alarm") for run in range(1200) if random.random() < 0.01]
    looks = [
        CalibrationCheck.of(PROMISE, {run: extents[run] for run in [*extents][:run_count]}, (), pages)
        for run_count in range(4, 1200, 4)
    ]
    assert not any(look.broken for look in looks)
    assert looks[-1].rate.units == 1196


@pytest.mark.parametrize(
    "budget",
    [{}, {"pages_per_run": 0.01, "pages_per_run_day": 0.01}, {"pages_per_run_day": 0.01, "run_days": 0}],
)
def test_a_promise_has_one_budget_and_what_it_counts(budget):
    with pytest.raises(ValueError, match="pages_per_run"):
        Calibration(made_at=datetime.fromtimestamp(MADE, UTC), runs=9, pages=0, **budget)


@pytest.fixture
def tell(tmp_path):
    """Records what a sink was told of an incident, by its number. Gives the store and the way to do it."""

    def send(number, reason, at, severity=Severity.CRITICAL):
        one = INCIDENT.replace(id=f"{number:016x}", run="jsonl:/r", severity=severity)
        body = {"event": Event.FIRING, "key": f"{number} {at} {reason}"} if reason.sends else None
        outcome = SinkDecision(one, "slack", Decision(Event.FIRING, reason), body)
        store.commit([Update("jsonl:/r", "/r", "jsonl", b"", [one], [outcome])], at)
        return one

    with Store(tmp_path) as store:
        yield store, send


def test_the_state_knows_which_pages_were_sent_since(tell):
    store, send = tell
    send(0, Reason.FIRST_NOTIFICATION, MADE - 1)
    send(1, Reason.SILENCED, MADE)
    send(2, Reason.FIRST_NOTIFICATION, MADE, Severity.INFO)
    page = send(3, Reason.FIRST_NOTIFICATION, MADE)
    assert store.feedback.useful_runs() == []
    store.feedback.add(page.id, page.detector, "false-alarm", "", MADE)
    assert store.feedback.pages(MADE) == [
        PageSent("jsonl:/r", page.id, page.detector, page.variant, MADE, "false-alarm")
    ]


def test_the_state_knows_of_which_runs_an_incident_was_right(tell):
    store, send = tell
    info = send(2, Reason.BELOW_SINK_SEVERITY, MADE, Severity.INFO)
    store.feedback.add(info.id, info.detector, "useful", "", MADE)
    assert store.feedback.useful_runs() == ["jsonl:/r"]
    assert store.feedback.pages(MADE) == []


def test_what_comes_back_on_a_later_day_is_another_page(tell):
    store, send = tell
    send(0, Reason.FIRST_NOTIFICATION, MADE)
    send(0, Reason.ESCALATED, MADE + 60)
    send(0, Reason.REPEAT_DUE, MADE + DAY)
    for day in (2, 4, 6):
        send(0, Reason.REOPENED, MADE + day * DAY)
    assert [(page.at - MADE) / DAY for page in store.feedback.pages(MADE)] == [0, 2, 4, 6]
    store.forget(["jsonl:/r"])
    store.prune(MADE + 90 * DAY)
    assert len(store.feedback.pages(MADE)) == 4, "for as long as its incident is open"


def test_a_page_that_nobody_got_is_none(tell):
    store, send = tell
    send(0, Reason.FIRST_NOTIFICATION, MADE)
    send(1, Reason.FIRST_NOTIFICATION, MADE)
    send(1, Reason.WITHDRAWN, MADE + 60)
    assert [page.incident for page in store.feedback.pages(MADE)] == [f"{0:016x}"]
    store.outbox.failed("slack", store.outbox.worst("slack", 9), "no such place", MADE + 90)
    assert store.feedback.pages(MADE) == []
