"""One incident, one message, the worst first."""

import json

from msgspec.structs import replace

from sentinel.detectors.api import Severity
from sentinel.incidents.duplicates import KnownIncidents
from sentinel.notifications.decide import Reason, Route, Sent, SinkPolicy
from sentinel.notifications.routing import RoutingContext, RunChanges, cost, route_changes
from sentinel.notifications.silences import silence
from sentinel.sinks.batching import notification
from sentinel.sources.identity import RunIdentity
from tests.incidents.timeline import START, changed, rows, tracker

RUN = RunIdentity(run="grpo/seed-1", path="/runs/grpo/seed-1", framework="trl-grpo")
NOW = 1000.0
SLACK = SinkPolicy("slack")
PAGER = SinkPolicy("pager", Severity.CRITICAL)


def decided(verdicts, policies=(SLACK,), silences=(), sent=None, ours=None, others=()):
    ours = ours or tracker()
    changes = ours.advance(verdicts)
    sent = {} if sent is None else sent
    return route_changes(
        RunChanges(RUN, changes, ours.open()),
        RoutingContext(policies, silences, sent, KnownIncidents(others)),
        NOW,
    )


def sent_events(decisions):
    return [(o.sink, o.incident.detector, o.decision.event) for o in decisions if o.body]


def test_the_worst_incident_comes_first_and_knows_the_others():
    decisions = decided(rows("ww", "kl-blowup") + rows(".cc", "entropy-collapse", tag="entropy"))
    assert sent_events(decisions) == [
        ("slack", "entropy-collapse", "firing"),
        ("slack", "kl-blowup", "firing"),
    ]
    assert decisions[0].body["also_open"] == ["kl is at 1.0"]
    assert decisions[1].body["also_open"] == ["entropy is at 2.0"]


def test_the_changes_of_one_incident_keep_their_order():
    """Also when one poll reads a whole life; nothing is said twice."""
    decisions = decided(rows("wwcc" + "." * 10) + rows("ww", "flat-loss-at-init"))
    assert sent_events(decisions) == [
        ("slack", "kl-blowup", "firing"),
        ("slack", "kl-blowup", "escalated"),
        ("slack", "kl-blowup", "resolved"),
        ("slack", "flat-loss-at-init", "firing"),
    ]
    assert len({o.body["key"] for o in decisions}) == 4


def test_each_sink_hears_what_it_asked_for():
    decisions = decided(rows("wwcc"), (SLACK, PAGER))
    assert sent_events(decisions) == [
        ("slack", "kl-blowup", "firing"),
        ("slack", "kl-blowup", "escalated"),
        ("pager", "kl-blowup", "firing"),
    ]
    assert [o.decision.reason for o in decisions if not o.body] == [Reason.BELOW_SINK_SEVERITY]


def test_an_explained_incident_is_recorded_and_not_sent():
    decisions = decided(rows("cc", "loss-scale-collapse") + rows("...cc", "flat-loss-at-init", tag="loss"))
    assert sent_events(decisions) == [("slack", "loss-scale-collapse", "firing")]
    assert decisions[1].decision.reason is Reason.INHIBITED
    assert decisions[0].body["also_open"] == ["loss is at 4.0"]  # it supports the diagnosis


def test_a_cause_that_comes_later_holds_back_what_is_unsent():
    """It began first, and was noticed last."""
    cause = changed(rows("....cc", "loss-scale-collapse"), onset=lambda: (0, None))
    decisions = decided(rows("..cccc", "flat-loss-at-init", tag="loss") + cause)
    assert sent_events(decisions) == [("slack", "loss-scale-collapse", "firing")]
    assert decisions[0].decision.reason is Reason.INHIBITED


def test_a_cause_that_comes_later_ends_the_reminders():
    ours = tracker()
    sent = {}
    effect = "flat-loss-at-init"
    assert sent_events(decided(rows("cc", effect), ours=ours, sent=sent)) == [("slack", effect, "firing")]
    for last in sent.values():
        last["firing"] = Sent(-1e9, Severity.CRITICAL, 2, 1)
    assert sent_events(decided(rows("cc", effect, first=2), ours=ours, sent=dict(sent))) == [
        ("slack", effect, "repeat")
    ]
    decided(
        changed(rows("cc", "loss-scale-collapse", first=2), onset=lambda: (0, None)), ours=ours, sent=sent
    )
    for last in sent.values():
        last["repeat"] = Sent(-1e8, Severity.CRITICAL, 4, 2)
    assert sent_events(decided(rows("cc", effect, first=4), ours=ours, sent=sent)) == []


def test_who_does_not_hear_of_the_cause_hears_of_what_it_explains():
    decisions = decided(
        rows("wwwwww", "loss-scale-collapse") + rows("..cccc", "flat-loss-at-init", tag="loss"),
        (SLACK, PAGER),
    )
    assert sent_events(decisions) == [
        ("pager", "flat-loss-at-init", "firing"),
        ("slack", "loss-scale-collapse", "firing"),
    ]


def test_a_reminder_that_is_not_due_is_no_news():
    ours = tracker()
    first = decided(rows("ww"), ours=ours)
    assert sent_events(first)
    sent = {(first[0].incident.id, "slack"): {"firing": _sent(first[0], NOW)}}
    assert decided(rows("w", first=2), sent=sent, ours=ours) == []


def test_it_is_repeated_while_it_is_found():
    ours = tracker()
    (first,) = decided(rows("ww"), ours=ours)
    sent = {(first.incident.id, "slack"): {first.decision.event: _sent(first, NOW - SLACK.repeat_seconds)}}
    assert decided([], sent=sent, ours=ours) == []
    (again,) = decided(rows("w", first=2), sent=sent, ours=ours)
    assert (again.decision.event, again.decision.reason) == ("repeat", Reason.REPEAT_DUE)
    assert again.body["key"] != first.body["key"]


def test_when_a_silence_ends_what_is_still_open_is_heard():
    ours = tracker()
    quiet = silence("grpo/*", "kl-*", NOW + 1, "", NOW - 1)
    (decision,) = decided(rows("ww"), silences=[quiet], ours=ours)
    assert (decision.body, decision.decision.reason) == (None, Reason.SILENCED)
    assert decided([], silences=[quiet], ours=ours) == []
    (late,) = decided([], ours=ours)
    assert (late.decision.event, late.decision.reason) == ("firing", Reason.FIRST_NOTIFICATION)


def test_the_body_is_a_notification_of_what_is_so_by_now():
    """Not of the row that fired."""
    (decision,) = decided(rows("...wwww"))
    sent = notification(json.dumps(decision.body))
    assert "catalogue" not in decision.body, "which follows from the incident"
    fired = decision.incident
    assert (fired.last_step, fired.findings, fired.summary) == (40, 2, "kl is at 4.0")
    now = {"last_step": 60, "last_time": START + 360, "findings": 4, "summary": "kl is at 6.0"}
    assert sent.incident == fired.replace(**now)
    assert sent.run == RUN
    assert [entry["id"] for entry in sent.catalogue] == ["R2", "R1"]


def test_the_same_event_has_the_same_key_whoever_derives_it():
    assert decided(rows("ww"))[0].body["key"] == decided(rows("ww"))[0].body["key"]


def test_cost_says_only_what_is_known():
    (change,) = tracker().advance(rows("ww"))
    incident = change.incident
    assert cost(incident.replace(last_time=None)) == "10 steps"
    assert cost(incident.replace(last_step=incident.onset_step)) == "1 min"
    assert cost(incident.replace(last_step=None, onset_time=None)) == ""


def _sent(outcome, at):
    return Sent(at, outcome.incident.severity, outcome.incident.findings, outcome.number)


def test_what_began_and_ended_between_two_looks_is_told_whatever_explained_it():
    """The cause is nothing that the sink hears of, and it is over as well."""
    ours = tracker()
    cause = rows("ww" + "." * 40, "loss-scale-collapse")
    effect = rows("..ww" + "." * 20, "flat-loss-at-init", tag="loss")
    everything = SinkPolicy("all", Severity.INFO, route=Route(detectors=("flat-*",)))
    decisions = decided(cause + effect, (everything,), ours=ours)
    assert ours.open() == []
    assert sent_events(decisions) == [
        ("all", "flat-loss-at-init", "firing"),
        ("all", "flat-loss-at-init", "resolved"),
    ]


NAN = "non-finite-metric"


def test_one_message_names_the_ranks_that_report_the_same():
    ranks = [rows("cc", NAN, "loss", stream=f"log:rank {rank}") for rank in range(8)]
    (sent,) = [one for one in decided([line for rank in ranks for line in rank]) if one.body]
    assert sent.body["consequences"] == ["the same in rank 1, rank 2, rank 3, rank 4, and 3 more"]


def test_a_rank_that_began_before_what_was_sent_is_not_sent_again():
    ours = tracker()
    sent = {}
    for rank, wanted in ((3, 1), (0, 0), (5, 0)):
        decisions = decided(rows("cc", NAN, "loss", stream=f"log:rank {rank}"), ours=ours, sent=sent)
        assert len(sent_events(decisions)) == wanted


def test_what_a_message_says_of_its_consequences():
    """They are lines in it."""
    nan = rows("cccc", NAN, "loss")
    effects = rows("..cc", "flat-loss-at-init", "loss"), rows("..cc", "kl-blowup")
    (sent,) = [one for one in decided([line for rows in (nan, *effects) for line in rows]) if one.body]
    assert sent.incident.detector == NAN
    assert sent.body["consequences"] == ["Loss is at 3.0", "Kl is at 3.0"]


class TestOneTroubleInSeveralIncidents:
    """What is found first is told first. The cause that is found later tells the rest of the story."""

    EFFECT = "flat-loss-at-init"
    CAUSE = "loss-scale-collapse"

    def found(self, severities, sent, policy=SLACK):
        """Return what the cause brings, the tracker, and the id of the effect, which was sent before."""
        ours = tracker()
        (effect,) = decided(rows("ww", self.EFFECT, "loss"), (policy,), sent=sent, ours=ours)
        for last in sent.values():
            last["firing"] = Sent(NOW, Severity.WARNING, 2, 1)
        earlier = changed(rows(severities, self.CAUSE, first=2), onset=lambda: (0, None))
        decisions = decided(earlier, (policy,), sent=sent, ours=ours)
        return [one for one in decisions if one.body], ours, effect.incident.id

    def test_a_worse_cause_is_an_escalation_of_what_was_sent(self):
        (cause,), _, effect = self.found("cc", {})
        assert sent_events([cause]) == [("slack", self.CAUSE, "escalated")]
        assert cause.incident.trouble == effect

    def test_a_cause_as_bad_is_no_page(self):
        (cause,), _, effect = self.found("ww", {})
        assert (cause.decision.event, cause.decision.reason) == ("repeat", Reason.CAUSE_FOUND)
        assert (cause.incident.trouble, cause.is_page) == (effect, False)

    def test_the_end_of_one_is_not_told_while_the_other_goes_on(self):
        sent = {}
        _, ours, _ = self.found("cc", sent)
        end = decided(rows("." * 10, self.EFFECT, "loss", first=4), sent=sent, ours=ours)
        assert [one.decision.reason for one in end] == [Reason.OF_SAME_TROUBLE]
        end = decided(rows("." * 10, self.CAUSE, first=20), sent=sent, ours=ours)
        assert sent_events(end) == [("slack", self.CAUSE, "resolved")]

    def test_a_run_that_ends_with_both_is_told_once(self):
        sent = {}
        _, ours, _ = self.found("cc", sent)
        changes = ours.finalize([], "ended with exit code 0")
        context = RoutingContext([SLACK], [], sent, KnownIncidents([]))
        decisions = route_changes(RunChanges(RUN, changes, ours.open()), context, NOW)
        assert sent_events(decisions) == [("slack", self.CAUSE, "ended")]

    def test_what_follows_each_incident_by_itself_is_told_of_each(self):
        each = SinkPolicy("alertmanager", by_incident=True)
        sent = {}
        (cause,), ours, _ = self.found("cc", sent, each)
        assert sent_events([cause]) == [("alertmanager", self.CAUSE, "firing")]
        end = decided(rows("." * 10, self.EFFECT, "loss", first=4), (each,), sent=sent, ours=ours)
        assert sent_events(end) == [("alertmanager", self.EFFECT, "resolved")]


class TestACauseThatIsWithdrawn:
    """It was found because the run seemed to be over. Its receiver knows it and its effect by one key."""

    EFFECT = "flat-loss-at-init"
    CAUSE = "loss-scale-collapse"

    def routed(self, ours, changes, sent):
        news = RunChanges(RUN, changes, ours.open())
        decisions = route_changes(news, RoutingContext([SLACK], [], sent, KnownIncidents([])), NOW)
        for of_sink in sent.values():
            for event, last in of_sink.items():
                of_sink[event] = replace(last, waiting=False)
        return decisions

    def test_its_effect_speaks_again_at_once(self):
        ours = tracker()
        sent = {}
        self.routed(ours, ours.advance(rows("ww", self.EFFECT, "loss")), sent)
        cause = changed(rows("cc", self.CAUSE, first=2), onset=lambda: (0, None))
        told = self.routed(ours, ours.finalize(cause, "ended with exit code 0"), sent)
        assert sent_events(told)[0] == ("slack", self.CAUSE, "escalated")
        told = self.routed(ours, ours.undo_finalize(), sent)
        assert sent_events(told) == [("slack", self.EFFECT, "repeat")]
        assert sent_events(self.routed(ours, ours.advance([]), sent)) == []


class TestACrashAfterANumberBroke:
    NUMBER = changed(rows("....cc", NAN, "loss"), catalogue=("GE-nan",))
    CRASH = changed(rows(".....cc", "crash", "", stream=""), catalogue=("GE-nan",))

    def test_both_at_once_are_one_message(self):
        (sent,) = [one for one in decided(self.NUMBER + self.CRASH) if one.body]
        assert sent.incident.detector == NAN
        assert len(sent.body["consequences"]) == 1

    def test_a_crash_is_news_after_the_number_was_told(self):
        ours = tracker()
        sent = {}
        decided(self.NUMBER, ours=ours, sent=sent)
        (crash,) = [one for one in decided(self.CRASH, ours=ours, sent=sent) if one.body]
        assert crash.incident.detector == "crash"
        assert crash.body["cause"] == "Loss is at 5.0, since step 40"
