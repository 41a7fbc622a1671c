"""One training in several logs: told once."""

import pytest

from detectors.api import Severity
from sentinel.alerts import duplicates
from sentinel.alerts.decision import Reason
from sentinel.alerts.duplicates import KnownIncidents, same_finding
from sentinel.alerts.incident import Change
from sentinel.alerts.outcomes import Audience, News, tell
from tests.alerts.test_outcomes import NOW, PAGER, RUN, SLACK, decided, heard
from tests.alerts.timeline import book, rows

INCIDENT = book().advance(rows("ww"))[0].incident.changed(evidence={"level": 4.123456789, "why": "high"})


def logged(format_, **fields):
    """The same incident as a log of another format has it."""
    return INCIDENT.changed(**{"id": f"of {format_}", "run": f"{format_}:/runs/1", **fields})


@pytest.mark.parametrize(
    ("fields", "same"),
    [
        ({}, True),
        ({"evidence": {"level": 4.1234565, "why": "rising"}}, True),
        ({"evidence": {"level": 4.12}}, True),
        ({"fired_time": INCIDENT.fired_time + 60}, True),
        ({"fired_time": None}, True),
        ({"severity": Severity.CRITICAL, "evidence": {"level": 9}}, True),
        ({"evidence": {"level": 4.2, "why": "high"}}, False),
        ({"evidence": {"why": "high"}}, False),
        ({"fired_time": INCIDENT.fired_time + 3600}, False),
        ({"onset_step": 7}, False),
        ({"fired_step": 7}, False),
        ({"detector": "entropy-collapse"}, False),
        ({"signal": "loss"}, False),
    ],
)
def test_when_two_logs_tell_of_the_same(fields, same):
    other = logged("tensorboard", **fields)
    assert same_finding(INCIDENT, other) is same
    assert list(KnownIncidents([INCIDENT, other]).duplicates_of(INCIDENT)) == [other] * same


def test_two_logs_of_one_format_are_two_trainings():
    assert not same_finding(logged("jsonl"), logged("jsonl", run="jsonl:/runs/2"))


def test_many_runs_of_one_format_are_not_compared_with_each_other(monkeypatch):
    monkeypatch.setattr(duplicates, "same_finding", lambda *_: pytest.fail("they were"))
    runs = [logged("jsonl", run=f"jsonl:/runs/{i}", id=str(i)) for i in range(1000)]
    found = KnownIncidents(runs)
    assert not [same for run in runs for same in found.duplicates_of(run)]


def both(verdicts, policies=(SLACK,), later=None):
    """What is decided about a JSON lines log and, after that, about a TensorBoard log of one training."""
    ours, theirs = book(), book()
    sent = {}
    first = decided(verdicts, policies, sent=sent, ours=ours)
    changes = [Change(c.event, _moved(c.incident)) for c in theirs.advance(later or verdicts)]
    still_open = [_moved(incident) for incident in theirs.open()]
    others = [outcome.incident for outcome in first]
    audience = Audience(policies, [], sent, KnownIncidents(others))
    return first, tell(News(RUN, changes, still_open), audience, NOW)


def _moved(incident):
    return incident.changed(id=incident.id[::-1], run="tensorboard:/runs/1")


def test_what_a_sink_heard_of_one_log_it_does_not_hear_of_another():
    first, second = both(rows("ww"))
    assert heard(first) == [("slack", "kl-blowup", "firing")]
    assert heard(second) == []
    assert [outcome.decision.reason for outcome in second] == [Reason.TOLD_OF_ANOTHER_LOG]


def test_nor_that_it_is_over():
    first, second = both(rows("ww" + "." * 10))
    assert [event for _, _, event in heard(first)] == ["firing", "resolved"]
    assert heard(second) == []


def test_worse_news_are_told_once():
    first, second = both(rows("wwcc"), (SLACK, PAGER))
    assert len(heard(first)) == 3
    assert heard(second) == []


def test_worse_news_than_those_told_are_told():
    _, second = both(rows("ww"), later=rows("cc"))
    assert heard(second) == [("slack", "kl-blowup", "firing")]
