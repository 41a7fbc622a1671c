"""One training in several logs: told once."""

import pytest

from sentinel.detectors.api import Severity
from sentinel.incidents.duplicates import KnownIncidents, same_finding
from sentinel.incidents.incident import Change, Event, State
from sentinel.notifications.decide import Reason, Sent
from sentinel.notifications.routing import RoutingContext, RunChanges, route_changes
from sentinel.runs.training_groups import TrainingEvidence
from tests.incidents.timeline import rows, tracker
from tests.notifications.test_routing import NOW, PAGER, RUN, SLACK, sent_events

INCIDENT = tracker().advance(rows("ww"))[0].incident.replace(evidence={"level": 4.123456789, "why": "high"})


def logged(format_, **fields):
    """The same incident as a log of another format has it."""
    return INCIDENT.replace(**{"id": f"of {format_}", "run": f"{format_}:/runs/1", **fields})


@pytest.mark.parametrize(
    ("fields", "same"),
    [
        ({}, True),
        ({"evidence": {"level": 4.12}}, True),
        ({"fired_time": INCIDENT.fired_time + 60}, True),
        ({"fired_time": None}, True),
        ({"severity": Severity.CRITICAL, "evidence": {"level": 9}}, True),
        ({"evidence": {"level": 4.2, "why": "high"}}, True),
        ({"tag": "another"}, True),
        ({"fired_time": INCIDENT.fired_time + 3600}, False),
        ({"onset_step": 7000}, True),
        ({"fired_step": 7000}, True),
        ({"onset_step": 7000, "fired_step": 7000}, False),
        ({"signal": "", "tag": "another"}, False),
        ({"detector": "entropy-collapse"}, False),
        ({"signal": "loss"}, False),
    ],
)
def test_when_two_logs_tell_of_the_same(fields, same):
    other = logged("tensorboard", **fields)
    assert same_finding(INCIDENT, other) is same
    assert list(of_one_training([INCIDENT, other]).duplicates_of(INCIDENT)) == [other] * same


def test_what_nothing_joins_is_two_trainings():
    incidents = KnownIncidents([INCIDENT, logged("tensorboard")], lambda *_: False)
    assert not [*incidents.duplicates_of(INCIDENT)]


@pytest.mark.parametrize(
    ("fields", "same"),
    [
        ({"evidence": {"level": 4.12}}, True),
        ({"evidence": {"level": 4.2}}, False),
        ({"severity": Severity.CRITICAL, "evidence": {"level": 9}}, True),
        ({"evidence": {"other": 1}}, False),
    ],
)
def test_logs_that_only_share_a_place_are_two_trainings_if_their_numbers_differ(fields, same):
    other = logged("tensorboard", **fields)
    incidents = KnownIncidents([INCIDENT, other], lambda *one: not one[2])
    assert [*incidents.duplicates_of(INCIDENT)] == [other] * same


def test_logs_that_share_nothing_are_not_asked_about():
    def same_training(*runs):
        raise AssertionError(f"asked about {runs}")

    fleet = [logged("tensorboard", id=f"{n}", run=f"tensorboard:/runs/{n}") for n in range(9)]

    def place(run):
        return TrainingEvidence(
            run.partition(":")[0], frozenset({"place /runs" if "tensorboard" in run else run})
        )

    incidents = KnownIncidents([INCIDENT, *fleet], same_training, joints=place)
    assert not [*incidents.duplicates_of(INCIDENT)]
    assert not [*incidents.duplicates_of(fleet[0])], "a place joins no logs of one format"


def of_one_training(incidents, better="jsonl"):
    return KnownIncidents(incidents, lambda *_: True, lambda run: (int(run.startswith(better)), 0))


def both(verdicts, policies=(SLACK,), later=None, better="jsonl"):
    """What is decided about a JSON lines log and, after that, about a TensorBoard log of one training."""
    ours = tracker()
    theirs = tracker()
    sent = {}
    changes = [Change(c.event, _moved(c.incident)) for c in theirs.advance(later or verdicts)]
    still_open = [_moved(incident) for incident in theirs.open()]
    first = ours.advance(verdicts)
    incidents = of_one_training([c.incident for c in first] + still_open, better)
    audience = RoutingContext(policies, [], sent, incidents)
    return (
        route_changes(RunChanges(RUN, first, ours.open()), audience, NOW),
        route_changes(RunChanges(RUN, changes, still_open), audience, NOW),
    )


def test_the_better_informed_log_speaks_though_it_comes_later():
    first, second = both(rows("ww"), better="tensorboard")
    assert [outcome.decision.reason for outcome in first] == [Reason.TOLD_OF_ANOTHER_LOG]
    assert sent_events(second) == [("slack", "kl-blowup", "firing")]


STALL = {"runs_silent": 2, "place": "/runs", "since": "2026-01-01 00:00 UTC"}


def test_a_run_that_hangs_is_told_once_the_others_that_fell_silent_with_it_go_on():
    one, other = (INCIDENT.replace(id=i, run=f"jsonl:/runs/{i}", evidence=STALL) for i in "ab")
    sent = {}

    def hears(change, now, still_open):
        audience = RoutingContext([SLACK], [], sent, KnownIncidents([one, other]))
        return [
            (o.incident.id, o.decision.event)
            for o in route_changes(RunChanges(RUN, change, still_open), audience, now)
        ]

    assert hears([Change(Event.FIRING, one)], NOW, [one]) == [("a", "firing")]
    decisions = hears([Change(Event.FIRING, other)], NOW, [other])
    assert not sent[other.id, "slack"], decisions
    over = one.replace(state=State.RESOLVED)
    assert hears([Change(Event.RESOLVED, over)], NOW + 60, []) == [("a", "resolved")]
    assert hears([], NOW + 120, [other]) == [], "it may go on any moment as well"
    assert hears([], NOW + 700, [other]) == [("b", "firing")]


def _moved(incident):
    return incident.replace(id=incident.id[::-1], run="tensorboard:/runs/1")


def test_what_a_sink_heard_of_one_log_it_does_not_hear_of_another():
    first, second = both(rows("ww"))
    assert sent_events(first) == [("slack", "kl-blowup", "firing")]
    assert sent_events(second) == []
    assert [outcome.decision.reason for outcome in second] == [Reason.TOLD_OF_ANOTHER_LOG]


@pytest.mark.parametrize(("told_of_cause", "reason"), [(True, Reason.TOLD_OF_ANOTHER_LOG), (False, None)])
def test_what_a_cause_explains_in_another_log_was_told_with_the_cause(told_of_cause, reason):
    """A console shows the error that ended the process; that the run crashed is seen in each of its logs."""
    cause = INCIDENT.replace(id="cause", run="console:/runs/1", detector="console-error")
    explained = logged("console", inhibited_by="cause")
    sent = {("cause", "slack"): {Event.FIRING: Sent(NOW - 1, cause.severity, 1, 1)}} if told_of_cause else {}
    audience = RoutingContext([SLACK], [], sent, of_one_training([INCIDENT, explained]))
    [decision] = route_changes(RunChanges(RUN, [Change(Event.FIRING, INCIDENT)], [INCIDENT]), audience, NOW)
    assert decision.decision.reason is (reason or Reason.FIRST_NOTIFICATION)


def test_nor_that_it_is_over():
    first, second = both(rows("ww" + "." * 10))
    assert [event for _, _, event in sent_events(first)] == ["firing", "resolved"]
    assert sent_events(second) == []


def test_worse_news_are_told_once():
    first, second = both(rows("wwcc"), (SLACK, PAGER))
    assert len(sent_events(first)) == 3
    assert sent_events(second) == []


def test_worse_news_than_those_told_are_told():
    _, second = both(rows("ww"), later=rows("cc"))
    assert sent_events(second) == [("slack", "kl-blowup", "firing")]


ERROR = INCIDENT.replace(
    detector="console-error",
    signal="",
    tag="",
    onset_step=0,
    fired_step=0,
    evidence={"text": "ValueError: x"},
)


def crash(**fields):
    return logged("tensorboard", signal="", tag="", onset_step=7000, fired_step=7000, **fields)


@pytest.mark.parametrize("detector", ["run-crashed", "rank-died"])
def test_a_training_crashes_once_whatever_its_logs_tell_of_that(detector):
    """An error that one log shows, the death of a process in another, and its end in a third."""
    quotes = crash(detector=detector)
    assert [*of_one_training([ERROR, quotes]).duplicates_of(ERROR)] == [quotes]
    assert not [*of_one_training([INCIDENT, quotes]).duplicates_of(INCIDENT)]
    sent = {(quotes.id, SLACK.name): {Event.FIRING: Sent(NOW, quotes.severity, 1, 1)}}
    audience = RoutingContext([SLACK], [], sent, of_one_training([ERROR, quotes]))
    (outcome,) = route_changes(RunChanges(RUN, [Change(Event.FIRING, ERROR)], [ERROR]), audience, NOW + 2)
    assert outcome.decision.reason is Reason.TOLD_OF_ANOTHER_LOG


def test_the_crash_of_a_log_without_steps_is_that_of_one_with_steps():
    printed = crash().replace(run="console:/runs/1", onset_step=0, fired_step=0)
    assert same_finding(printed, crash())
    assert not same_finding(printed.replace(signal="loss"), crash().replace(signal="loss"))


def test_two_logs_that_only_a_third_one_joins_tell_of_the_same():
    """The console shares a process with the log for TensorBoard, which shares a place with the state."""
    keys = {
        "console": TrainingEvidence("console", frozenset({"process"})),
        "tensorboard": TrainingEvidence("tensorboard", frozenset({"process", "place"})),
        "trainer_state": TrainingEvidence("trainer_state", frozenset({"place"})),
    }
    logs = {name: logged(name) for name in keys}

    def same_training(run, other, _):
        return bool(keys[run.partition(":")[0]].join_keys & keys[other.partition(":")[0]].join_keys)

    incidents = KnownIncidents(logs.values(), same_training, joints=lambda run: keys[run.partition(":")[0]])
    assert [*incidents.duplicates_of(logs["console"])] == [logs["tensorboard"], logs["trainer_state"]]
