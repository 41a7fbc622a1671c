"""The life of an incident, as timelines."""

import json
import math

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sentinel.detectors.api import Severity
from sentinel.detectors.reading.looks import Look
from sentinel.incidents.incident import Event, State, incident_id
from sentinel.incidents.track import REMEMBERED_ROWS
from tests.incidents.timeline import RUN, START, by_position, changed, rows, stretches, timeline_of, tracker


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
        ("ww" + "." * 9 + "w" + "." * 9, ["firing warning @10"]),
        ("ww" + "." * 10 + "w.ww", ["firing warning @10", "resolved warning @110", "reopened warning @150"]),
        ("ww..c.c....cc", ["firing warning @10", "escalated critical @120"]),
    ],
)
def test_timeline(line, expected):
    assert timeline_of(tracker().advance(rows(line))) == expected


def test_hold_and_clear_are_the_detectors():
    assert timeline_of(tracker(hold=1, clear=2).advance(rows(".w.."))) == [
        "firing warning @10",
        "resolved warning @30",
    ]
    assert timeline_of(tracker(hold=3).advance(rows("wwcwcc"))) == ["firing warning @20"]


LOOKS = {"P": Look.PAGES, "d": Look.DOUBT, "o": Look.WELL}
"""Where cards are read while a run goes on, one pages, would page if the run ended here, or none would."""


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("....P", ["firing warning @40"]),  # whatever `hold` says
        ("P" + "." * 60, ["firing warning @0"]),  # rows between looks end nothing
        ("P" + "." * 9 + "d" + "." * 60, ["firing warning @0"]),  # nor does a doubt
        ("P" + "." * 9 + "o", ["firing warning @0", "resolved warning @100"]),
        ("P...o" + "." * 6, ["firing warning @0", "resolved warning @100"]),
        ("P" + "." * 9 + "o..P", ["firing warning @0", "resolved warning @100", "reopened warning @130"]),
        ("..d" + "." * 20, []),  # a doubt begins nothing
        ("P..ww.w..o..w" + "." * 9, ["firing warning @0"]),  # the rule goes on to find it
        ("P..ww.w..o..w" + "." * 10, ["firing warning @0", "resolved warning @220"]),
        ("ww...d" + "." * 7, ["firing warning @10", "resolved warning @110"]),  # of the rule alone
    ],
)
def test_looks_of_cards(line, expected):
    verdicts = []
    for mark, (verdict,) in zip(line, rows(line.translate(str.maketrans("Pdo", "w.."))), strict=True):
        look = LOOKS.get(mark)
        verdicts.append([msgspec.structs.replace(verdict, look=look, is_of_card=look is Look.PAGES)])
    assert timeline_of(tracker().advance(verdicts)) == expected


def test_what_an_incident_says():
    (change,) = tracker().advance(rows("..wc"))
    incident = change.incident
    assert incident.id == incident_id(RUN, "s", 1, "kl", "kl-blowup", 2)
    assert (incident.onset_step, incident.onset_time) == (20, START + 120)
    assert (incident.fired_step, incident.fired_time) == (30, START + 180)
    assert (incident.summary, incident.catalogue) == ("kl is at 3.0", ("R2", "R1"))
    assert incident.evidence == {"level": 3.0}
    assert incident.findings == 2


def test_escalation_says_what_got_worse():
    fired, escalated = tracker().advance(rows("wwcc"))
    assert (fired.incident.summary, escalated.incident.summary) == ("kl is at 1.0", "kl is at 3.0")
    assert escalated.incident.state is State.ESCALATED
    assert escalated.incident.id == fired.incident.id


def test_the_detectors_own_onset_counts():
    """Steps and seconds count from the same point, also where the log does not have its time."""
    for time in (START + 42, None):
        (change,) = tracker().advance(changed(rows("..ww"), onset=lambda time=time: (7, time)))
        assert (change.incident.onset_step, change.incident.onset_time) == (7, time)


def test_another_variant_that_got_worse_has_an_onset_of_its_own():
    first = changed(rows("ii"), onset=lambda: (3, START))
    for variant, onset in (("bad", 3), ("worse", 17)):
        later = changed(rows("iicc")[2:], variant=variant, onset=lambda: (17, START + 9))
        fired, escalated = tracker().advance(first + later)
        assert (fired.incident.onset_step, escalated.incident.onset_step) == (3, onset)


class TestReturn:
    def test_what_comes_back_soon_is_the_same_incident(self):
        ours = tracker()
        first, resolved, back = ours.advance(rows("ww" + "." * 10 + "..ww"))
        assert resolved.incident.resolved_step == 110
        assert (back.event, back.incident.id) == (Event.REOPENED, first.incident.id)
        assert (back.incident.state, back.incident.resolved_step) == (State.FIRING, None)
        assert (back.incident.reopen_count, back.incident.onset_step, back.incident.findings) == (1, 0, 4)
        assert [incident.id for incident in ours.open()] == [first.incident.id]

    def test_it_has_to_hold_again(self):
        assert timeline_of(tracker().advance(rows("ww" + "." * 10 + ".w.w.w")))[2:] == []

    def test_it_may_come_back_worse(self):
        changes = tracker().advance(rows("ww" + "." * 10 + "cc"))
        assert timeline_of(changes)[2:] == ["reopened warning @130", "escalated critical @130"]
        assert {change.incident.id for change in changes} == {changes[0].incident.id}

    def test_each_return_doubles_the_clean_rows_that_end_it(self):
        line = "ww" + "." * 10 + "ww" + "." * 20 + "ww" + "." * 39
        assert timeline_of(tracker().advance(rows(line)))[-1] == "reopened warning @350"
        assert timeline_of(tracker().advance(rows(line + ".")))[-1] == "resolved warning @750"

    @pytest.mark.slow
    def test_what_keeps_coming_back_says_so_once_and_stays_open_for_long(self):
        line = "".join("ww" + "." * 10 * 2**n for n in range(8)) + "ww"
        changes = tracker().advance(rows(line))
        events = [change.event.value for change in changes]
        assert events == [
            *["firing", "resolved", "reopened", "resolved", "reopened", "resolved", "flapping", "resolved"],
            *["reopened", "resolved"] * 4,
            "reopened",
        ]
        assert changes[-1].incident.reopen_count == 8
        assert timeline_of(tracker().advance(rows(line + "." * 639)))[-1].startswith("reopened")
        assert timeline_of(tracker().advance(rows(line + "." * 640)))[-1].startswith("resolved")

    @pytest.mark.slow
    def test_after_long_it_is_another_one(self):
        gone = "ww" + "." * 10 + "." * REMEMBERED_ROWS
        changes = tracker().advance(rows(gone[:-1] + "ww"))
        assert [change.event.value for change in changes] == ["firing", "resolved", "reopened"]
        first, _, second = tracker().advance(rows(gone + "ww"))
        assert first.incident.id != second.incident.id
        assert second.incident.onset_step == 10 * len(gone)

    @pytest.mark.slow
    def test_nothing_is_remembered_for_good(self):
        ours = tracker()
        ours.advance(rows("ww" + "." * 10 + "." * REMEMBERED_ROWS))
        assert ours.tracked_keys() == set()

    def test_what_comes_back_after_a_restart_is_another_one(self):
        """Who restarted the run wants to know at once that it happens again."""
        for line in ("ww" + "." * 10 + "| ..ww", "ww |" + "." * 10 + "ww"):
            changes = tracker().advance(rows(line))
            assert [change.event.value for change in changes] == ["firing", "resolved", "firing"]
            assert changes[-1].incident.attempt == 2


@pytest.mark.parametrize("last_first", [False, True])
def test_a_last_row_counts_before_it_is_judged_as_the_last(last_first):
    """Both verdicts stand at the same row, and they may arrive in any order."""
    line = rows("...w")
    (end,) = changed(rows("...c")[3:], final=True)
    changes = tracker().advance([end, *line] if last_first else [*line, end])
    assert timeline_of(changes) == ["firing critical @30"]
    assert changes[0].incident.findings == 2


def test_the_end_of_a_stream_follows_all_its_rows():
    early_end = changed(rows("c", "flat-loss-at-init"), final=True)
    changes = tracker().advance([*early_end, *rows("..ww")])
    assert [change.incident.detector for change in changes] == ["kl-blowup", "flat-loss-at-init"]


def test_open_incidents_keep_up_with_the_finding():
    ours = tracker()
    ours.advance(rows("wwwww..w.."))
    (incident,) = ours.open()
    assert (incident.last_step, incident.last_time, incident.findings) == (70, START + 420, 6)


def test_a_restart_carries_an_open_incident_on():
    assert timeline_of(tracker().advance(rows("ww | wwww"))) == ["firing warning @10"]
    assert timeline_of(tracker().advance(rows("ww | .........."))) == [
        "firing warning @10",
        "resolved warning @90",
    ]


def test_a_restart_ends_a_finding_that_did_not_hold():
    assert timeline_of(tracker().advance(rows("..w | w...."))) == []
    (change,) = tracker().advance(rows("..w | .ww"))
    assert (change.incident.attempt, change.incident.onset_step) == (2, 10)


def test_counts_start_afresh_with_a_restart():
    assert timeline_of(tracker().advance(rows("ww..... | ........."))) == ["firing warning @10"]
    assert timeline_of(tracker().advance(rows("wwc | c"))) == ["firing warning @10"]


def test_streams_do_not_touch_each_other():
    changes = tracker().advance(rows("w.w.", stream="a") + rows(".w.w", stream="b"))
    assert changes == []


class TestSilentLog:
    def test_open_incidents_are_lost_once_and_never_resolved(self):
        ours = tracker()
        ours.advance(rows("ww"))
        assert timeline_of(ours.silent(600, 600)) == []
        assert timeline_of(ours.silent(601, 600)) == ["lost warning @10"]
        assert timeline_of(ours.silent(90_000, 600)) == []
        assert [i.state for i in ours.open()] == [State.LOST]

    def test_they_go_on_quietly_when_the_log_does(self):
        ours = tracker()
        ours.advance(rows("wwcc"))
        ours.silent(601, 600)
        assert ours.undo_finalize() == ours.advance(rows("c", first=4)) == []
        assert [i.state for i in ours.open()] == [State.ESCALATED]

    def test_what_is_resolved_is_not_lost(self):
        ours = tracker()
        ours.advance(rows("ww" + "." * 10))
        assert ours.silent(601, 600) == []

    def test_they_may_resolve_or_get_worse_on_the_way_back(self):
        ours = tracker()
        ours.advance(rows("ww"))
        ours.silent(601, 600)
        assert timeline_of(ours.advance(rows("cc", first=2))) == ["escalated critical @30"]
        ours.silent(601, 600)
        assert timeline_of(ours.advance(rows("." * 10, first=4))) == ["resolved critical @130"]
        assert ours.open() == []

    def test_a_waiting_finding_is_not_lost(self):
        ours = tracker()
        ours.advance(rows("w"))
        assert ours.silent(601, 600) == []


class TestEndOfTheRun:
    END = "the run crashed at step 40 (it printed 'oops')"

    def test_it_resolves_nothing(self):
        ours = tracker()
        ours.advance(rows("wwww"))
        assert timeline_of(ours.finalize([], self.END)) == ["ended warning @30"]
        (incident,) = ours.open()
        assert (incident.state, incident.ended) == (State.FIRING, self.END)
        assert ours.finalize([], self.END) == []

    def test_it_may_be_known_long_after_the_log_went_silent(self):
        """A process that hangs for ten minutes may be killed after that."""
        ours = tracker()
        ours.advance(rows("cc"))
        ours.silent(601, 600)
        assert ours.finalize([]) == []
        killed = changed(rows("c", "crash", stream="", first=4), final=True)
        assert timeline_of(ours.finalize(killed, self.END)) == ["firing critical @40", "ended critical @10"]
        assert [incident.state for incident in ours.open()] == [State.FIRING] * 2

    def test_a_run_that_goes_on_has_not_ended(self):
        ours = tracker()
        ours.advance(rows("ww"))
        ours.finalize([], self.END)
        assert ours.undo_finalize() == []
        assert [incident.ended for incident in ours.open()] == [""]

    def test_what_is_stored_knows_the_end(self):
        ours = tracker()
        ours.advance(rows("ww"))
        ours.finalize([], self.END)
        stored = json.loads(json.dumps(ours.dump()))
        ours = tracker()
        ours.restore(stored)
        assert ours.finalize(changed(rows("w", first=2), final=True), self.END) == []


class TestMetricThatStaysWhereItIs:
    """A rule that compares with what is usual calls it clean once that is usual."""

    @pytest.mark.parametrize(("above", "below"), [(5.0, None), (None, 5.0)])
    def test_it_resolves_once_the_metric_is_back(self, above, below):
        levels = {False: 9.0, True: 1.0} if above else {False: 1.0, True: 9.0}
        bad = changed(rows("ww"), limits=(above, below))
        stays = changed(rows("." * 35, first=2), level=lambda _: levels[False])
        back = changed(rows("." * 30, first=37), level=lambda _: levels[True])
        assert timeline_of(tracker().advance([*bad, *stays])) == ["firing warning @10"]
        assert timeline_of(tracker().advance([*bad, *stays, *back])) == [
            "firing warning @10",
            "resolved warning @410",
        ]


def test_a_cut_does_not_show_in_what_is_told_after_its_cause_is_over():
    verdicts = rows("cccc.....", "loss-scale-collapse", "scale") + rows("c" * 14, "flat-loss-at-init")
    whole = tracker(clear=3)
    cut = tracker(clear=3)
    changes = []
    for position in by_position(verdicts):
        changes += cut.advance(position)
    assert timeline_of(changes)[-1] == "firing critical @90"
    assert changes == whole.advance(verdicts)


DETECTORS = [
    *("kl-blowup", "loss-scale-collapse", "flat-loss-at-init", "lr-schedule-mismatch"),
    *("loss-divergence", "exploding-grad-norm"),
]
parts = st.tuples(st.sampled_from("..wwci|"), st.integers(1, 12))
lines = st.lists(parts, max_size=6).map(lambda drawn: "".join(mark * length for mark, length in drawn))
restless = st.text("..wwci|", max_size=40) | lines


@pytest.mark.long
@settings(deadline=None)  # what is drawn may be long
@given(
    data=st.data(),
    drawn=st.lists(st.tuples(restless, st.sampled_from("ab"), st.sampled_from("xy")), max_size=4),
    together=st.booleans(),
)
def test_any_cut_gives_the_same_life(data, drawn, together):
    """Row by row, in segments, and with the incidents stored between polls and without clean verdicts that
    nobody needs.
    """
    verdicts = []
    for (line, tag, stream), name in zip(drawn, data.draw(st.permutations(DETECTORS)), strict=False):
        verdicts += rows(line, name, tag, stream, first=data.draw(st.integers(0, 3)))
    whole = tracker(clear=3)
    expected = whole.advance(data.draw(st.permutations(verdicts)))

    cut = tracker(clear=3)
    changes = []
    poll = []
    for position in by_position(verdicts):
        poll += position
        if data.draw(st.booleans()):
            changes += _poll(cut, poll, together)
            poll = []
            stored = json.loads(json.dumps(cut.dump()))
            cut = tracker(clear=3)
            cut.restore(stored)
    changes += _poll(cut, poll, together)

    for stream in "xy":
        assert [c for c in changes if c.incident.stream == stream] == [
            c for c in expected if c.incident.stream == stream
        ]
    assert sorted(cut.open(), key=lambda i: i.id) == sorted(whole.open(), key=lambda i: i.id)
    assert cut.tracked_keys() == whole.tracked_keys()


def _poll(ours, verdicts, together):
    needed = ours.tracked_keys() | {v.key for (v,) in verdicts if v.severity}
    segments = [rows for rows in verdicts if rows[0].key in needed]
    return ours.advance(stretches(segments) if together else segments)


@pytest.mark.long
@given(st.lists(st.tuples(restless, st.sampled_from("ab"), st.sampled_from(DETECTORS)), max_size=5))
def test_stretches_tell_the_same_as_rows(drawn):
    verdicts = {}
    for line, tag, name in drawn:
        verdicts |= {(name, tag, n): one for n, one in enumerate(rows(line, name, tag))}
    one_by_one = tracker(clear=4)
    together = tracker(clear=4)
    expected = [c for part in by_position(list(verdicts.values())) for c in one_by_one.advance(part)]
    assert together.advance(stretches(list(verdicts.values()))) == expected
    assert together.dump() == one_by_one.dump()


def test_a_stretch_is_not_gone_through_row_by_row():
    """Of a hundred thousand verdicts hardly any is made."""
    made = []

    class Rows(list):
        def __getitem__(self, at):
            made.append(at)
            return super().__getitem__(at)

    (rest,) = stretches(rows("w" * 1000))
    ours = tracker()
    assert timeline_of(ours.advance([Rows(rest)])) == ["firing warning @10"]
    assert ours.open()[0].findings == 1000
    assert len(made) < 20


@pytest.mark.slow
@given(restless)
def test_every_life_is_in_order(line):
    """An incident fires once, may get worse, returns only after its end, and never becomes less bad."""
    latest = {}
    for change in tracker(clear=3).advance(rows(line)):
        before = latest.get(change.incident.id)
        assert (before is None) == (change.event == "firing")
        assert before is None or before.open == (change.event not in ("reopened", "flapping"))
        assert before is None or change.incident.severity >= before.severity
        latest[change.incident.id] = change.incident


def test_odd_evidence_never_raises():
    for odd in (None, math.nan, "text", [1, 2], object()):
        verdicts = changed(rows("ww"), evidence={"level": odd})
        assert tracker().advance(verdicts)[0].incident.summary.startswith("kl is at ")


def test_an_unknown_variant_is_named_after_its_detector():
    assert tracker().advance(changed(rows("ww"), variant="new"))[0].incident.summary == "kl-blowup"


def test_severity_is_a_severity():
    assert isinstance(tracker().advance(rows("ww"))[0].incident.severity, Severity)


@pytest.mark.parametrize(
    ("interims", "told_at"), [([10, 12], 12), ([10, 14, 16], 16), ([20, 21, 30], 30), ([30, 60, 80], 80)]
)
def test_what_a_card_did_not_find_at_one_interim_has_to_stand_anew(interims, told_at):
    incidents = tracker()
    lines = [changed(rows("w", first=number - 1), interim=1.1, is_of_card=True) for number in interims]
    changes = [incidents.advance(line) for line in lines]
    assert [interims[n] for n, found in enumerate(changes) if timeline_of(found)] == [told_at]
