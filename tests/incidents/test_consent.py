"""A page about an outcome waits until the run looks ill as a whole."""

import msgspec
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from sentinel.detectors.api import Severity
from sentinel.incidents.consent import LOOKS_ILL
from sentinel.incidents.incident import Event
from sentinel.incidents.lifecycle import IncidentTracker
from sentinel.incidents.verdict_merge import Key, Segment
from tests.incidents.timeline import RUN, by_position, detector, rows, stretches, timeline_of

ASKS = "kl-blowup"
ILL = LOOKS_ILL
WELL = LOOKS_ILL - 0.01


def tracker() -> IncidentTracker:
    """A book of a detector whose pages wait."""
    return IncidentTracker(RUN, {ASKS: msgspec.structs.replace(detector(ASKS), needs_consent=True)})


def opinion(
    share: float | None, index: int, tag: str = "loss", stream: str = "s", attempt: int = 1
) -> Segment:
    """What the forest says of an outcome up to a row."""
    ((verdict,),) = rows(".", first=index)
    key = Key(RUN, stream, attempt, tag, "")
    return [msgspec.structs.replace(verdict, key=key, opinion=lambda: share)]


def test_a_finding_about_a_run_that_looks_well_informs_and_pages_once_it_looks_ill():
    ours = tracker()
    ours.advance([opinion(WELL, 8)])
    assert timeline_of(ours.advance(rows("ww", first=8))) == ["firing info @90"]
    assert timeline_of(ours.advance([opinion(WELL, 11), *rows("ww", first=12)])) == []
    (paged,) = ours.advance([opinion(ILL, 15)])
    assert (paged.event, paged.incident.severity) == (Event.ESCALATED, Severity.WARNING)
    assert (paged.incident.fired_step, paged.incident.onset_step) == (150, 80)
    assert timeline_of(ours.advance(rows("wcc", first=16))) == ["escalated critical @180"]


def test_a_finding_that_heals_before_pages_nobody():
    ours = tracker()
    line = [opinion(WELL, 8), *rows("ww" + "." * 10, first=8), opinion(ILL, 30)]
    assert timeline_of(ours.advance(line)) == ["firing info @90", "resolved info @190"]


def test_what_is_clean_at_the_moment_waits_on():
    ours = tracker()
    ours.advance([opinion(WELL, 8), *rows("ww..", first=8)])
    assert timeline_of(ours.advance([opinion(ILL, 12)])) == []
    assert timeline_of(ours.advance(rows("ww", first=13))) == ["escalated warning @140"]


@pytest.mark.parametrize(
    "said", [[], [opinion(None, 8)], [opinion(WELL, 8, stream="of another")], [opinion(WELL, 7)]]
)
def test_what_nobody_knows_hinders_no_page(said):
    """Nor does what was said before the trouble began."""
    ours = tracker()
    ours.advance(said)
    assert timeline_of(ours.advance(rows("ww", first=8))) == ["firing warning @90"]


def test_one_ill_outcome_of_the_stream_is_enough():
    ours = tracker()
    ours.advance([opinion(WELL, 8), opinion(ILL, 8, tag="accuracy")])
    assert timeline_of(ours.advance(rows("ww", first=8))) == ["firing warning @90"]


def test_an_attempt_has_opinions_of_its_own():
    ours = tracker()
    ours.advance([opinion(WELL, 8)])
    assert timeline_of(ours.advance(rows("|ww", first=8))) == ["firing warning @10"]


def test_it_is_asked_only_where_a_page_depends_on_it():
    asked = []
    ((said,),) = [opinion(WELL, 8)]
    ours = tracker()
    ours.advance([[msgspec.structs.replace(said, opinion=lambda: asked.append(1) or WELL)]])
    ours.advance(rows("w", first=8))
    assert not asked
    ours.advance(rows("w", first=9))
    assert asked


def test_a_watch_that_starts_again_remembers():
    before = tracker()
    before.advance([opinion(WELL, 8), *rows("ww", first=8)])
    ours = tracker()
    ours.restore(before.dump())
    assert timeline_of(ours.advance(rows("ww", first=10))) == []
    assert timeline_of(ours.advance([opinion(ILL, 12)])) == ["escalated warning @110"]


def test_what_was_said_of_an_end_that_was_none_is_forgotten():
    ours = tracker()
    ours.advance([opinion(WELL, 8), *rows("ww", first=8)])
    (at_end,) = opinion(ILL, 9)
    assert timeline_of(ours.finalize([[msgspec.structs.replace(at_end, final=True)]])) == [
        "escalated warning @90"
    ]
    ours.undo_finalize()
    assert [incident.severity for incident in ours.open()] == [Severity.INFO]
    assert timeline_of(ours.advance(rows("ww", first=10))) == []


def test_others_do_not_wait():
    ours = IncidentTracker(RUN, {ASKS: detector(ASKS)})
    ours.advance([opinion(WELL, 8)])
    assert timeline_of(ours.advance(rows("ww", first=8))) == ["firing warning @90"]


@pytest.mark.slow
@example([("w", WELL), ("w", None), ("w", None), (".", None), (".", ILL)])
@given(st.lists(st.tuples(st.sampled_from("ww.c"), st.sampled_from([None, None, WELL, ILL])), min_size=1))
def test_it_does_not_depend_on_polls(log):
    line = "".join(mark for mark, _ in log)
    said = [opinion(share, index) for index, (_, share) in enumerate(log) if share is not None]
    polls = {index: list(poll) for index, poll in enumerate(by_position(rows(line)))}
    for segment in said:
        polls[segment[0].position].append(segment)
    at_once, in_polls = tracker(), tracker()
    changes = at_once.advance([*stretches(rows(line)), *said])
    assert [change for index in sorted(polls) for change in in_polls.advance(polls[index])] == changes
    assert in_polls.open() == at_once.open()
