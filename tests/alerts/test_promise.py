"""What came of a promise is counted by runs, and its breach is told when chance does not explain it."""

from dataclasses import replace
from datetime import UTC, datetime

import pytest

from sentinel.alerts.decision import Decision, Event, Reason
from sentinel.alerts.outcomes import Outcome
from sentinel.alerts.promise import Promise, Rate, Realised
from sentinel.alerts.store import Store, Update
from sentinel.alerts.tables import PageSent
from sentinel.detectors.api import Severity
from tests.sinks.samples import INCIDENT

MADE = 1.7e9
DAY = 86400.0
BODY = {"event": Event.FIRING, "key": "a key"}
PROMISE = Promise(made_at=datetime.fromtimestamp(MADE, UTC), pages_per_run=0.01, runs=340, pages=0)


def realised(runs, pages, crashed=()):
    """What comes of the promise in runs of a day, numbered from 0."""
    extents = {str(number): (MADE, MADE + DAY) for number in range(runs)}
    return Realised.of(PROMISE, extents, crashed, pages)


def sent(run, verdict="", detector="kl-blowup"):
    return PageSent(str(run), f"of {run}", detector, verdict)


def test_a_rate_has_the_exact_interval():
    rate = Rate(14, 812)
    assert (round(rate.low, 4), round(rate.high, 4)) == (0.0095, 0.0288)
    assert (Rate(0, 9).low, Rate(9, 9).high, Rate(0, 0).share) == (0.0, 1.0, 0.0)


def test_a_promise_is_the_budget_or_what_so_few_runs_prove():
    assert PROMISE.highest == pytest.approx(0.0108, abs=1e-4)
    assert PROMISE.model_copy(update={"pages_per_run": 0.05}).highest == 0.05


def test_answers_break_a_promise_once_chance_does_not_explain_them():
    few, many = ([sent(run, "false-alarm") for run in range(count)] for count in (1, 9))
    assert realised(100, few).advice == ""
    assert realised(100, many).advice == "recalibrate: 9 false of 9 answers"


def test_pages_without_an_answer_are_asked_for():
    told = realised(100, [sent(run) for run in range(9)])
    assert not told.broken
    assert "if 9 pages without an answer were false, recalibrate" in told.advice


def test_runs_that_went_wrong_are_no_healthy_ones():
    told = realised(10, [sent(0, "useful"), sent(1), sent(2, "false-alarm")], crashed=["1"])
    assert (told.runs, told.paged, told.false, told.pages) == (8, 1, 1, 3)
    assert told.answers == {"useful": 1, "false-alarm": 1}


def test_what_checks_of_the_run_find_is_no_page_of_thresholds():
    assert realised(10, [sent(0, detector="run-crashed"), sent(1, detector="a rule of one's own")]).pages == 0


def test_only_what_a_run_wrote_since_counts():
    extents = {"over": (MADE - 3 * DAY, MADE - DAY), "on": (MADE - DAY, MADE + DAY), "untimed": (None, None)}
    told = Realised.of(PROMISE, extents, (), [sent("over"), sent("gone")])
    assert (told.runs, told.pages, told.run_days) == (2, 0, 1.0)


def test_a_promise_and_what_came_of_it_is_said():
    told = realised(100, [*(sent(run, "false-alarm") for run in range(9)), sent(9, "useful")])
    assert told.lines() == [
        "promised: at most 1.1% of healthy runs page (1.0% allowed): when left out, 0 of 340 healthy runs "
        "(0.0%, at most 1.1%) did",
        "realised: 9 of 99 healthy runs (9.1%, at most 16.6%); 10 pages, 0.1 a run-day; 9 false of 10 "
        "answers",
        "recalibrate: 9 false of 10 answers",
    ]


def test_the_state_knows_which_pages_were_sent_since(tmp_path):
    def told(number, severity, reason, at):
        one = replace(INCIDENT, id=f"{number:016x}", run="jsonl:/r", severity=severity)
        outcome = Outcome(one, "slack", Decision(Event.FIRING, reason), BODY if reason.sends else None)
        store.commit([Update("jsonl:/r", "/r", "jsonl", b"", [one], [outcome])], at)
        return one

    with Store(tmp_path) as store:
        told(0, Severity.WARNING, Reason.FIRST_NOTIFICATION, MADE - 1)
        told(1, Severity.WARNING, Reason.SILENCED, MADE)
        told(2, Severity.INFO, Reason.FIRST_NOTIFICATION, MADE)
        page = told(3, Severity.CRITICAL, Reason.FIRST_NOTIFICATION, MADE)
        store.feedback.add(page.id, page.detector, "false-alarm", "", MADE)
        assert store.feedback.pages(MADE) == [PageSent("jsonl:/r", page.id, page.detector, "false-alarm")]
