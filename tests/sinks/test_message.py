import pytest
from msgspec.structs import replace

from sentinel.common.text import sentence
from sentinel.detectors.api import Maturity
from sentinel.incidents.causes import PossibleCause
from sentinel.incidents.incident import Event, State
from sentinel.sinks.message import message, subject, text
from sentinel.sources.identity import RunIdentity
from tests.sinks.samples import INCIDENT, NOTIFICATION, about, digest

SUMMARY = "KL to the reference is 3.2 nats per token, above 2.0."


@pytest.mark.parametrize(
    ("event", "headline"),
    [
        (Event.FIRING, SUMMARY),
        (Event.ESCALATED, f"Got worse: {SUMMARY}"),
        (Event.REPEAT, f"Still there: {SUMMARY}"),
        (Event.RESOLVED, f"Resolved after 30 steps (5 min): {SUMMARY}"),
        (Event.REOPENED, f"Came back: {SUMMARY}"),
        (Event.FLAPPING, f"Keeps coming back: {SUMMARY}"),
        (Event.LOST, f"The log went silent: {SUMMARY}"),
        (Event.ENDED, f"The run crashed at step 440 (it printed 'Killed') with this still there: {SUMMARY}"),
    ],
)
def test_the_headline_says_what_is_wrong_and_what_is_new(event, headline):
    assert message(about(event)).headline == headline
    assert subject(about(event)) == f"grpo-7b: {headline}"


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ("loss is flat", "Loss is flat."),
        ("Why?", "Why?"),
        ("a\nb\x1b[31m", "A b."),
        ("eval/loss rose", "eval/loss rose."),
        ("", ""),
    ],
)
def test_a_sentence_has_a_capital_letter_and_a_full_stop(words, expected):
    assert sentence(words) == expected


def test_what_is_withdrawn_because_the_run_goes_on_says_so():
    notification = about(Event.RESOLVED)
    notification = replace(notification, incident=notification.incident.replace(state=State.WITHDRAWN))
    assert message(notification).headline == f"The run goes on after all, so this is over: {SUMMARY}"


def test_a_resolved_incident_asks_for_nothing():
    content = message(about(Event.RESOLVED))
    assert (content.causes, content.commands) == ([], [])
    assert "since" not in dict(content.facts)
    assert "Since" not in text(about(Event.RESOLVED))


def test_the_end_of_one_incident_says_what_else_is_open():
    over = about(Event.RESOLVED)
    assert f"Still open: {over.also_open[0].capitalize()}" in text(over)
    assert "Still open" not in text(NOTIFICATION)


def test_without_a_known_cause_the_page_says_what_to_do_first():
    bare = INCIDENT.replace(causes=(), first_step="Read the last lines that it printed.")
    assert "Do: Read the last lines that it printed." in text(replace(NOTIFICATION, incident=bare))
    for event in (Event.RESOLVED, Event.TEST):
        assert "Do:" not in text(replace(NOTIFICATION, event=event, incident=bare))


def test_of_a_log_without_times_it_is_said_when_it_was_heard():
    bare = INCIDENT.replace(onset_time=None, fired_time=None, last_time=None)
    told = replace(NOTIFICATION, incident=bare, found_at=1_767_225_610.0)
    (since,) = (line for line in text(told).splitlines() if line.startswith("Since:"))
    assert "heard 2026-01-01 00:00:10 UTC" in since
    assert "heard" not in text(NOTIFICATION)


def test_a_question_is_answered():
    over = about(Event.RESOLVED)
    question = over.incident.replace(no_reminder=True, ended="the run finished at step 440 (it says so)")
    headline = message(replace(over, incident=question)).headline
    assert headline == f"Answered, the run finished at step 440 (it says so): {SUMMARY}"


def test_what_is_not_known_is_left_out():
    bare = INCIDENT.replace(onset_time=None, fired_time=None, last_time=None)
    content = message(replace(NOTIFICATION, incident=bare, run=RunIdentity(run="a"), checkpoint=""))
    assert content.facts == [
        ("run", "a"),
        ("logged as", "train/kl"),
        ("found", "step 412"),
        ("since", "step 400, for 30 steps"),
    ]


def test_a_preview_says_so():
    incident = INCIDENT.replace(maturity=Maturity.PREVIEW)
    assert message(replace(NOTIFICATION, incident=incident)).title == "critical kl-blowup (preview)"


def test_the_command_that_silences_holds_no_text_of_a_run():
    hostile = replace(NOTIFICATION, run=RunIdentity(run="a", path="/runs/a b'; rm -rf ~ #"))
    assert [line.text for line in message(hostile).commands] == [
        "sentinel show 00c0ffee00c0ffee",
        "sentinel ack 00c0ffee00c0ffee",
    ]


def caused(*causes):
    entries = [{"id": c.id, "title": f"T{c.id}", "fix": "do", "check": "look"} for c in causes]
    notification = replace(NOTIFICATION, incident=INCIDENT.replace(causes=causes), catalogue=entries)
    return [
        line.text for line in message(notification).lines if line.label in ("Likely", "One of", "Do", "Check")
    ]


def test_one_cause_is_named_where_the_run_speaks_for_it():
    causes = PossibleCause("A", 0.8, "it shows"), PossibleCause("B", 0.2, "")
    assert caused(*causes) == ["TA (A, 80%): it shows", "do", "look"]


def test_three_causes_at_most_are_named_without_shares_where_nothing_tells():
    causes = [PossibleCause(name, 0.25, "") for name in "ABCD"]
    assert caused(*causes) == ["TA (A); TB (B); TC (C)", "do", "look"]


def test_a_clue_against_a_later_cause_gives_the_first_no_score():
    causes = PossibleCause("A", 0.8, ""), PossibleCause("B", 0.2, "against it: so")
    assert caused(*causes) == ["TA (A); TB (B)", "do", "look"]


def test_a_cause_says_what_it_supposes_and_the_run_does_not_show():
    notification = caused(PossibleCause("A", 1.0, "", ("several ranks", "LoRA")))
    assert notification[0] == "TA (A), which supposes several ranks and LoRA"


@pytest.mark.parametrize("event", [*Event])
def test_a_message_has_ten_lines_at_most(event):
    assert len(text(about(event)).splitlines()) <= 10


def test_a_digest_as_text():
    lines = text(digest(14, over=2)).splitlines()
    assert lines[0] == "14 incidents, in one message because they had to wait: 12 critical, 2 resolved"
    assert lines[1:4] == ["", f"critical kl-blowup in grpo-7b: {SUMMARY}", "  Do: raise `beta`"]
    assert lines[-1] == "All by detector: kl-blowup 12"
    assert subject(digest(14, over=2)) == lines[0]
