"""Who is told, as timelines: what happened, who heard it before, what is decided and why."""

import pytest

from detectors.api import Maturity, Severity
from sentinel.alerts.decision import Reason, Sent, SinkPolicy, decide
from sentinel.alerts.incident import Change, Event
from tests.alerts.timeline import book, rows

HOUR = 3600.0
NOW = 100 * HOUR
SINK = SinkPolicy("slack")
RUN = {"run": "team/a", "path": "/runs/team/a", "framework": "trl-grpo"}
(FIRED,) = book().advance(rows("ww"))
INCIDENT = FIRED.incident


def heard(*events, at=NOW - HOUR, severity=Severity.WARNING, findings=2, waiting=False):
    return {event: Sent(at, severity, findings, waiting) for event in events}


def decided(event, sent=None, policy=SINK, silenced=False, **fields):
    return decide(Change(event, INCIDENT.changed(**fields)), RUN, policy, silenced, sent or {}, NOW)


def reason(event, sent=None, policy=SINK, silenced=False, **fields):
    return decided(event, sent, policy, silenced, **fields).reason


@pytest.mark.parametrize("event", [Event.FIRING, Event.ESCALATED, Event.LOST, Event.REPEAT])
class TestKeptBack:
    def test_explained(self, event):
        assert reason(event, inhibited_by="x") is Reason.INHIBITED

    def test_not_severe_enough(self, event):
        assert reason(event, severity=Severity.INFO) is Reason.BELOW_SINK_SEVERITY

    def test_preview(self, event):
        assert reason(event, maturity=Maturity.PREVIEW) is Reason.PREVIEW_NOT_WANTED
        wanted = SinkPolicy("slack", include_preview=True)
        assert reason(event, policy=wanted, maturity=Maturity.PREVIEW) is Reason.FIRST_NOTIFICATION

    def test_silenced(self, event):
        assert reason(event, silenced=True) is Reason.SILENCED
        assert reason(event, heard(Event.FIRING), silenced=True) is Reason.SILENCED


@pytest.mark.parametrize("event", [Event.FIRING, Event.ESCALATED, Event.REPEAT])
def test_the_first_that_a_sink_hears_is_that_it_fires(event):
    """Also when it got worse unheard, when a silence ended, or when the sink is new."""
    decision = decided(event)
    assert (decision.event, decision.reason) == (Event.FIRING, Reason.FIRST_NOTIFICATION)


def test_unless_the_log_is_silent_already():
    assert decided(Event.LOST).event is Event.LOST


@pytest.mark.parametrize(
    ("event", "sent", "fields", "expected"),
    [
        # the same log read again from its start
        (Event.FIRING, heard(Event.FIRING), {}, Reason.ALREADY_SENT),
        (Event.ESCALATED, heard(Event.FIRING), {"severity": Severity.CRITICAL}, Reason.ESCALATED),
        (
            Event.ESCALATED,
            heard(Event.FIRING) | heard(Event.ESCALATED, severity=Severity.CRITICAL),
            {"severity": Severity.CRITICAL},
            Reason.ALREADY_SENT,
        ),
        (Event.RESOLVED, heard(Event.FIRING), {}, Reason.RESOLVED),
        (Event.RESOLVED, heard(Event.FIRING, Event.RESOLVED), {}, Reason.ALREADY_SENT),
        (Event.RESOLVED, {}, {}, Reason.NOT_SENT_BEFORE),
        (Event.LOST, heard(Event.FIRING), {}, Reason.LOST),
        (Event.LOST, heard(Event.FIRING, Event.LOST), {}, Reason.ALREADY_SENT),
        (Event.LOST, heard(Event.FIRING, Event.LOST), {"findings": 9}, Reason.LOST),
        (Event.REPEAT, heard(Event.FIRING, at=NOW - 3 * HOUR), {"findings": 9}, Reason.REPEAT_NOT_DUE),
        (Event.REPEAT, heard(Event.FIRING, at=NOW - 4 * HOUR), {"findings": 9}, Reason.REPEAT_DUE),
        (Event.REPEAT, heard(Event.FIRING, at=NOW - 9 * HOUR), {"findings": 2}, Reason.NOTHING_NEW),
        (
            Event.REPEAT,
            heard(Event.FIRING, at=NOW - 9 * HOUR, waiting=True),
            {"findings": 9},
            Reason.UNDELIVERED,
        ),
        (
            Event.REPEAT,
            heard(Event.FIRING, at=NOW - 9 * HOUR) | heard(Event.REPEAT, at=NOW - HOUR, findings=8),
            {"findings": 9},
            Reason.REPEAT_NOT_DUE,
        ),
    ],
)
def test_what_was_sent_before_counts(event, sent, fields, expected):
    decision = decided(event, sent, **fields)
    assert (decision.event, decision.reason) == (event, expected)


def test_a_clock_that_was_set_back_delays_no_reminder():
    ahead = heard(Event.FIRING, at=NOW + 72 * HOUR)
    assert reason(Event.REPEAT, ahead, findings=9) is Reason.REPEAT_DUE
    told = ahead | heard(Event.REPEAT, at=NOW - HOUR, findings=9)
    assert reason(Event.REPEAT, told, findings=12) is Reason.REPEAT_NOT_DUE


def test_the_end_is_heard_in_spite_of_a_silence():
    assert reason(Event.RESOLVED, heard(Event.FIRING), silenced=True) is Reason.RESOLVED


class TestReturn:
    """What comes back waits for the repeat interval, like everything that is still there."""

    HEARD = heard(Event.FIRING, at=NOW - 5 * HOUR) | heard(Event.RESOLVED, at=NOW - HOUR, findings=9)

    def test_it_is_not_told_before_the_repeat_interval_is_over(self):
        assert reason(Event.REOPENED, self.HEARD, findings=11, returns=1) is Reason.REPEAT_NOT_DUE

    def test_it_is_told_then(self):
        sent = heard(Event.FIRING, Event.RESOLVED, at=NOW - 4 * HOUR)
        decision = decided(Event.REOPENED, sent, findings=11, returns=1)
        assert (decision.event, decision.reason) == (Event.REOPENED, Reason.REOPENED)

    def test_who_has_heard_nothing_hears_that_it_fires(self):
        decision = decided(Event.REOPENED, findings=11, returns=1)
        assert (decision.event, decision.reason) == (Event.FIRING, Reason.FIRST_NOTIFICATION)

    def test_that_it_flaps_is_said_once_and_at_once(self):
        assert reason(Event.FLAPPING, self.HEARD, findings=11, returns=3) is Reason.FLAPPING
        again = self.HEARD | heard(Event.FLAPPING, findings=11)
        assert reason(Event.FLAPPING, again, findings=13, returns=3) is Reason.ALREADY_SENT

    def test_an_end_is_told_once_for_each_time_that_the_beginning_was(self):
        assert reason(Event.RESOLVED, self.HEARD, findings=11, returns=1) is Reason.ALREADY_SENT
        flapping = self.HEARD | heard(Event.FLAPPING, findings=11)
        assert reason(Event.RESOLVED, flapping, findings=12, returns=3) is Reason.RESOLVED

    def test_a_log_that_is_read_again_tells_no_end_again(self):
        sent = self.HEARD | heard(Event.REPEAT, findings=20)
        assert reason(Event.RESOLVED, sent, findings=9) is Reason.ALREADY_SENT


def test_which_reasons_send():
    assert {r.name for r in Reason if r.sends} == {
        "FIRST_NOTIFICATION",
        "ESCALATED",
        "REPEAT_DUE",
        "RESOLVED",
        "REOPENED",
        "FLAPPING",
        "LOST",
    }
