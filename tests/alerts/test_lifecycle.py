"""The life of an incident, as timelines."""

import json
import math

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from detectors.api import Severity
from sentinel.alerts.incident import State, incident_id
from sentinel.alerts.lifecycle import Policy
from tests.alerts.timeline import RUN, START, book, by_position, rows, told


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("..w.w.w..", []),  # a finding that does not hold is nobody's business
        ("...ww", ["firing warning @40"]),
        ("...wwwww", ["firing warning @40"]),
        ("wc", ["firing warning @10"]),  # as bad as it was on every row of the hold
        ("wccc", ["firing warning @10", "escalated critical @20"]),
        ("wwcwc", ["firing warning @10"]),  # worse for one row is not worse
        ("iiwwcc", ["firing info @10", "escalated warning @30", "escalated critical @50"]),
        ("ccwwww", ["firing critical @10"]),  # it never becomes less bad
        ("ww" + "." * 9, ["firing warning @10"]),
        ("ww" + "." * 10, ["firing warning @10", "resolved warning @110"]),
        ("ww" + "." * 9 + "w" + "." * 9, ["firing warning @10"]),  # flapping is one incident
        ("ww" + "." * 10 + "w.ww", ["firing warning @10", "resolved warning @110", "firing warning @150"]),
        ("ww..c.c....cc", ["firing warning @10", "escalated critical @120"]),
    ],
)
def test_timeline(line, expected):
    assert told(book().advance(rows(line))) == expected


def test_hold_and_clear_are_the_policys():
    assert told(book(policy=Policy(hold=1, clear=2)).advance(rows(".w.."))) == [
        "firing warning @10",
        "resolved warning @30",
    ]
    assert told(book(policy=Policy(hold=3)).advance(rows("wwcwcc"))) == ["firing warning @20"]


def test_what_an_incident_says():
    (change,) = book().advance(rows("..wc"))
    incident = change.incident
    assert incident.id == incident_id(RUN, "s", 1, "kl", "kl-blowup", 2)
    assert (incident.onset_step, incident.onset_time) == (20, START + 120)
    assert (incident.fired_step, incident.fired_time) == (30, START + 180)
    assert (incident.summary, incident.catalogue) == ("kl is at 3.0", ("R2", "R1"))
    assert incident.evidence == {"level": 3.0}
    assert incident.findings == 2


def test_escalation_says_what_got_worse():
    fired, escalated = book().advance(rows("wwcc"))
    assert (fired.incident.summary, escalated.incident.summary) == ("kl is at 1.0", "kl is at 3.0")
    assert escalated.incident.state is State.ESCALATED
    assert escalated.incident.id == fired.incident.id


def test_the_detectors_own_onset_counts():
    verdicts = [msgspec.structs.replace(v, onset_step=7) for v in rows("..ww")]
    assert book().advance(verdicts)[0].incident.onset_step == 7


def test_a_second_incident_has_its_own_id():
    first, _, second = book().advance(rows("ww" + "." * 10 + "ww"))
    assert first.incident.id != second.incident.id
    assert second.incident.onset_step == 120


def test_open_incidents_keep_up_with_the_finding():
    ours = book()
    ours.advance(rows("wwwww..w.."))
    (incident,) = ours.open()
    assert (incident.last_step, incident.last_time, incident.findings) == (70, START + 420, 6)


def test_a_restart_carries_an_open_incident_on():
    assert told(book().advance(rows("ww | wwww"))) == ["firing warning @10"]
    assert told(book().advance(rows("ww | .........."))) == ["firing warning @10", "resolved warning @90"]


def test_a_restart_ends_a_finding_that_did_not_hold():
    assert told(book().advance(rows("..w | w...."))) == []
    (change,) = book().advance(rows("..w | .ww"))
    assert (change.incident.attempt, change.incident.onset_step) == (2, 10)


def test_counts_start_afresh_with_a_restart():
    assert told(book().advance(rows("ww..... | ........."))) == ["firing warning @10"]
    assert told(book().advance(rows("wwc | c"))) == ["firing warning @10"]


def test_streams_do_not_touch_each_other():
    changes = book().advance(rows("w.w.", stream="a") + rows(".w.w", stream="b"))
    assert changes == []


class TestSilentLog:
    def test_open_incidents_are_lost_once_and_never_resolved(self):
        ours = book()
        ours.advance(rows("ww"))
        assert told(ours.silent(600, 600)) == []
        assert told(ours.silent(601, 600)) == ["lost warning @10"]
        assert told(ours.silent(90_000, 600)) == []
        assert [i.state for i in ours.open()] == [State.LOST]

    def test_they_go_on_quietly_when_the_log_does(self):
        ours = book()
        ours.advance(rows("wwcc"))
        ours.silent(601, 600)
        assert ours.advance(rows("c", first=4)) == []
        assert ours.silent(0, 600) == []
        assert [i.state for i in ours.open()] == [State.ESCALATED]

    def test_they_may_resolve_or_get_worse_on_the_way_back(self):
        ours = book()
        ours.advance(rows("ww"))
        ours.silent(601, 600)
        assert told(ours.advance(rows("cc", first=2))) == ["escalated critical @30"]
        ours.silent(601, 600)
        assert told(ours.advance(rows("." * 10, first=4))) == ["resolved critical @130"]
        assert ours.open() == []

    def test_a_waiting_finding_is_not_lost(self):
        ours = book()
        ours.advance(rows("w"))
        assert ours.silent(601, 600) == []


DETECTORS = ["kl-blowup", "loss-scale-collapse", "flat-loss-at-init", "lr-schedule-mismatch"]
lines = st.text("..wwwci|", max_size=60)


@given(
    data=st.data(), drawn=st.lists(st.tuples(lines, st.sampled_from("ab"), st.sampled_from("xy")), max_size=4)
)
def test_any_cut_gives_the_same_life(data, drawn):
    """Also when the book is put away between polls and clean verdicts that nobody needs are left out."""
    verdicts = {}
    for (line, tag, stream), name in zip(drawn, DETECTORS, strict=False):
        verdicts |= {(name, tag, stream, n): v for n, v in enumerate(rows(line, name, tag, stream))}
    policy = Policy(hold=2, clear=3)
    whole = book(policy=policy)
    expected = whole.advance(data.draw(st.permutations(list(verdicts.values()))))

    cut, found, poll = book(policy=policy), [], []
    for position in by_position(list(verdicts.values())):
        poll += position
        if data.draw(st.booleans()):
            found += _poll(cut, poll)
            poll = []
            stored = json.loads(json.dumps(cut.dump()))
            cut = book(policy=policy)
            cut.restore(stored)
    found += _poll(cut, poll)

    for stream in "xy":
        assert [c for c in found if c.incident.stream == stream] == [
            c for c in expected if c.incident.stream == stream
        ]
    assert sorted(cut.open(), key=lambda i: i.id) == sorted(whole.open(), key=lambda i: i.id)
    assert cut.awake() == whole.awake()


def _poll(ours, verdicts):
    needed = ours.awake() | {v.key for v in verdicts if v.severity}
    return ours.advance([v for v in verdicts if v.key in needed])


@given(lines)
def test_every_life_is_in_order(line):
    """An incident fires once, may get worse, resolves once, and is never known to be less bad."""
    seen = {}
    for change in book().advance(rows(line)):
        before = seen.get(change.incident.id)
        assert (before is None) == (change.event == "firing")
        assert before is None or before.open
        assert before is None or change.incident.severity >= before.severity
        seen[change.incident.id] = change.incident


def test_odd_evidence_never_raises():
    for odd in (None, math.nan, "text", [1, 2], object()):
        verdicts = [msgspec.structs.replace(v, evidence={"level": odd}) for v in rows("ww")]
        assert book().advance(verdicts)[0].incident.summary.startswith("kl is at ")


def test_an_unknown_variant_is_named_after_its_detector():
    verdicts = [msgspec.structs.replace(v, variant="new") for v in rows("ww")]
    assert book().advance(verdicts)[0].incident.summary == "kl-blowup"


def test_severity_is_a_severity():
    assert isinstance(book().advance(rows("ww"))[0].incident.severity, Severity)
