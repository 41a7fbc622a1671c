"""Who is told, as timelines: what happened, who heard it before, what is decided and why."""

from itertools import count

import pytest

from sentinel.detectors.api import Maturity, Severity
from sentinel.incidents.incident import Change, Event, State
from sentinel.notifications.decide import Reason, Sent, SinkPolicy, decide
from sentinel.sources.identity import RunIdentity
from tests.incidents.timeline import rows, tracker

HOUR = 3600.0
NOW = 100 * HOUR
SINK = SinkPolicy("slack")
RUN = RunIdentity(run="team/a", path="/runs/team/a", framework="trl-grpo")
(FIRED,) = tracker().advance(rows("ww"))
INCIDENT = FIRED.incident


STATES = {Event.RESOLVED: State.RESOLVED, Event.LOST: State.LOST, Event.ESCALATED: State.ESCALATED}
NUMBERS = count(1)


def heard(*events, at=NOW - HOUR, severity=Severity.WARNING, findings=2, waiting=False):
    """What was sent, in this order and after what earlier calls gave."""
    return {event: Sent(at, severity, findings, next(NUMBERS), waiting) for event in events}


def decided(event, sent=None, policy=SINK, silenced=False, **fields):
    fields = {"state": STATES.get(event, State.FIRING), **fields}
    return decide(Change(event, INCIDENT.replace(**fields)), RUN, policy, silenced, sent or {}, NOW)


def reason(event, sent=None, policy=SINK, silenced=False, **fields):
    return decided(event, sent, policy, silenced, **fields).reason


def test_other_logs_are_looked_at_only_before_a_first_notification():
    already_sent = iter([Severity.CRITICAL])
    change = Change(Event.REPEAT, INCIDENT)
    decision = decide(change, RUN, SINK, False, heard(Event.FIRING), NOW, already_sent)
    assert decision.reason is Reason.REPEAT_NOT_DUE
    assert decide(change, RUN, SINK, False, {}, NOW, already_sent).reason is Reason.TOLD_OF_ANOTHER_LOG
    assert not [*already_sent]


@pytest.mark.parametrize("event", [Event.FIRING, Event.ESCALATED, Event.LOST, Event.REPEAT])
class TestKeptBack:
    def test_explained(self, event):
        assert reason(event, inhibited_by="x") is Reason.INHIBITED

    def test_not_severe_enough(self, event):
        assert reason(event, severity=Severity.INFO) is Reason.BELOW_SINK_SEVERITY

    def test_preview(self, event):
        assert reason(event, maturity=Maturity.PREVIEW) is Reason.PREVIEW_NOT_WANTED
        with_preview = SinkPolicy("slack", include_preview=True)
        assert reason(event, policy=with_preview, maturity=Maturity.PREVIEW) is Reason.FIRST_NOTIFICATION

    def test_silenced(self, event):
        assert reason(event, silenced=True) is Reason.SILENCED
        assert reason(event, heard(Event.FIRING), silenced=True) is Reason.SILENCED


class TestEndOfTheRun:
    def test_who_heard_of_it_hears_once_that_the_run_ended_with_it(self):
        said = heard(Event.FIRING)
        decision = decided(Event.ENDED, said, ended="it crashed")
        assert (decision.event, decision.reason) == (Event.ENDED, Reason.ENDED)
        assert reason(Event.REPEAT, said | heard(Event.ENDED), ended="it crashed") is Reason.ALREADY_SENT
        assert reason(Event.REPEAT, said | heard(Event.ENDED)) is Reason.GOES_ON

    def test_it_is_told_although_nothing_was_found_since(self):
        assert reason(Event.REPEAT, heard(Event.ESCALATED), ended="it crashed") is Reason.ENDED


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
        (Event.LOST, heard(Event.FIRING, Event.LOST), {"findings": 9}, Reason.ALREADY_SENT),
        (Event.LOST, heard(Event.LOST, Event.REPEAT), {"findings": 9}, Reason.LOST),
        (Event.LOST, heard(Event.LOST, Event.REPEAT), {}, Reason.REPEAT_NOT_DUE),
        (Event.LOST, heard(Event.LOST, at=NOW - 5 * HOUR) | heard(Event.REPEAT), {}, Reason.LOST),
        # a reminder says what is so, though nothing changed
        (Event.REPEAT, heard(Event.FIRING), {"state": State.LOST}, Reason.LOST),
        (Event.REPEAT, heard(Event.FIRING), {"severity": Severity.CRITICAL}, Reason.ESCALATED),
        (Event.REPEAT, heard(Event.FIRING, Event.RESOLVED), {"findings": 4}, Reason.REOPENED),
        (Event.REPEAT, heard(Event.FIRING), {"state": State.RESOLVED}, Reason.RESOLVED),
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
    repeats = event is Event.REPEAT and expected.sends and expected is not Reason.REPEAT_DUE
    assert (decision.event, decision.reason) == (Event(expected) if repeats else event, expected)


def test_a_clock_that_was_set_back_delays_no_reminder():
    ahead = heard(Event.FIRING, at=NOW + 72 * HOUR)
    assert reason(Event.REPEAT, ahead, findings=9) is Reason.REPEAT_DUE
    sent = ahead | heard(Event.REPEAT, at=NOW - HOUR, findings=9)
    assert reason(Event.REPEAT, sent, findings=12) is Reason.REPEAT_NOT_DUE


def test_the_end_is_heard_in_spite_of_a_silence():
    assert reason(Event.RESOLVED, heard(Event.FIRING), silenced=True) is Reason.RESOLVED


class TestReturn:
    """What was told to be over and is back is told at once, until it flaps."""

    HEARD = heard(Event.FIRING, at=NOW - 5 * HOUR) | heard(Event.RESOLVED, at=NOW - HOUR, findings=9)
    FLAPS = HEARD | heard(Event.FLAPPING, at=NOW - HOUR, findings=11)

    def test_it_is_told_at_once(self):
        decision = decided(Event.REOPENED, self.HEARD, findings=11, reopen_count=1)
        assert (decision.event, decision.reason) == (Event.REOPENED, Reason.REOPENED)

    def test_it_is_no_news_to_who_does_not_know_that_it_was_over(self):
        assert reason(Event.REOPENED, heard(Event.FIRING), findings=11, reopen_count=1) is Reason.ALREADY_SENT

    def test_it_is_told_later_if_it_was_silenced(self):
        assert reason(Event.REOPENED, self.HEARD, silenced=True, findings=11) is Reason.SILENCED
        assert decided(Event.REPEAT, self.HEARD, findings=11).event is Event.REOPENED

    def test_who_has_heard_nothing_hears_that_it_fires(self):
        decision = decided(Event.REOPENED, findings=11, reopen_count=1)
        assert (decision.event, decision.reason) == (Event.FIRING, Reason.FIRST_NOTIFICATION)

    def test_that_it_flaps_is_said_once_and_at_once(self):
        assert decided(Event.FLAPPING, self.HEARD, findings=11, reopen_count=3).event is Event.FLAPPING
        assert reason(Event.REOPENED, self.FLAPS, findings=13, reopen_count=4) is Reason.ALREADY_SENT
        unheard = heard(Event.FIRING)
        assert decided(Event.FLAPPING, unheard, findings=11, reopen_count=3).reason is Reason.FLAPPING

    def test_the_end_of_what_flaps_is_told_once_it_stays_away(self):
        assert reason(Event.RESOLVED, self.FLAPS, findings=12, reopen_count=3) is Reason.MAY_RETURN
        long_ago = self.HEARD | heard(Event.FLAPPING, at=NOW - 4 * HOUR, findings=11)
        over = decided(Event.REPEAT, long_ago, state=State.RESOLVED, findings=12, reopen_count=3)
        assert (over.event, over.reason) == (Event.RESOLVED, Reason.RESOLVED)

    def test_what_flaps_is_told_as_such_when_it_returns_and_in_reminders(self):
        over = self.FLAPS | heard(Event.RESOLVED, findings=12)
        assert decided(Event.REOPENED, over, findings=14, reopen_count=4).event is Event.FLAPPING
        sent = heard(Event.FLAPPING, at=NOW - 5 * HOUR, findings=11)
        assert decided(Event.REPEAT, sent, findings=14, reopen_count=4).event is Event.FLAPPING

    def test_an_end_is_told_once_for_each_time_that_the_beginning_was(self):
        assert reason(Event.RESOLVED, self.HEARD, findings=11, reopen_count=1) is Reason.ALREADY_SENT

    def test_a_log_that_is_read_again_tells_nothing_again(self):
        sent = self.HEARD | heard(Event.REOPENED, findings=20)
        assert reason(Event.RESOLVED, sent, findings=9) is Reason.ALREADY_SENT
        over = sent | heard(Event.RESOLVED, findings=21)
        assert reason(Event.REOPENED, over, findings=20) is Reason.ALREADY_SENT


def test_a_log_that_goes_on_is_told_once():
    sent = heard(Event.FIRING, Event.LOST)
    decision = decided(Event.REPEAT, sent)
    assert (decision.event, decision.reason) == (Event.REPEAT, Reason.GOES_ON)
    assert reason(Event.REPEAT, sent | heard(Event.REPEAT)) is Reason.REPEAT_NOT_DUE


def test_which_reasons_send():
    assert {r.name for r in Reason if r.sends} == {
        "FIRST_NOTIFICATION",
        "ESCALATED",
        "REPEAT_DUE",
        "RESOLVED",
        "REOPENED",
        "FLAPPING",
        "LOST",
        "ENDED",
        "GOES_ON",
        "CAUSE_FOUND",
    }
