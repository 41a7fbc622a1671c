"""What a person says of incidents on the command line, and what becomes of it."""

import json
import re

import pytest

pytestmark = pytest.mark.slow


@pytest.fixture
def incident(sentinel, sick_run):
    assert sentinel("watch", "--once").status == 0
    (found,) = json.loads(sentinel("status", "--format", "json").out)["incidents"]
    return found["id"]


def grow(run, steps):
    with (run / "metrics.jsonl").open("a") as log:
        log.writelines(f'{{"step": {i}, "my/odd/kl": {9.0 * i}}}\n' for i in steps)


def test_an_acknowledged_incident_is_silent_until_that_is_taken_back(sentinel, incident, sick_run):
    told = sentinel("ack", incident[:6]).out
    assert told.startswith(
        f"{incident}: kl-blowup is acknowledged; to take it back: sentinel silence remove "
    )
    shown = sentinel("status").out
    assert re.search(rf"incident {incident} for (30 d|29 d 23 h): acknowledged", shown)
    assert f"kl-blowup of {sick_run}/metrics.jsonl, incident {incident}, " in sentinel("silence", "list").out
    assert sentinel("silence", "remove", told.split()[-1]).status == 0


@pytest.mark.parametrize("command", [["ack"], ["feedback", "--", "useful"]])
def test_an_incident_that_is_not_known_is_said(sentinel, incident, command):
    words = ["ack", "zz"] if command == ["ack"] else ["feedback", "zz", "useful"]
    ran = sentinel(*words)
    assert ran.status == 2
    assert ran.err == "sentinel: no incident has an id that begins with 'zz'; `sentinel status` shows them\n"


def test_a_silence_of_one_incident_leaves_the_others(sentinel, incident):
    added = sentinel("silence", "add", "--incident", incident, "--reason", "known")
    assert added.status == 0
    assert f"incident {incident}" in sentinel("status").out
    assert sentinel("silence", "add", "--reason", "nothing named").err == (
        "sentinel: name either a RUN or an --incident\n"
    )


def test_a_silence_that_matches_nothing_warns_and_counts(sentinel, incident):
    added = sentinel("silence", "add", "no/such-*", "--reason", "soon")
    assert added.status == 0
    assert added.err == "sentinel: no run that was watched so far matches 'no/such-*'\n"
    assert sentinel("silence", "add", "*sick*", "--reason", "now").err == ""


def test_feedback_is_counted_by_detector(sentinel, incident):
    assert sentinel("feedback", incident, "false-alarm", "--note", "a test").status == 0
    assert "kl-blowup: 1 false-alarm" in sentinel("status").out
    assert sentinel("feedback", incident, "useful").status == 0
    document = json.loads(sentinel("status", "--format", "json").out)
    assert document["feedback"] == [{"detector": "kl-blowup", "verdict": "useful", "incidents": 1}]
    assert sentinel("feedback", incident, "nonsense").status == 2
