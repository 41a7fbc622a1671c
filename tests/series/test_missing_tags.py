"""Tags that are expected and are not logged, beside a plain loop over all points."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sentinel.detectors.run_checks import Expected
from sentinel.detectors.signals import Signal
from sentinel.series.missing_tags import MissingTags
from sentinel.sources.base import Chunk
from tests.series.stored import again

RULE = Expected(Signal.EVAL_LOSS, 30.0)
TAGS = ("loss", "eval_loss", "eval_other")
POINTS = st.lists(
    st.tuples(st.sampled_from(range(3)), st.sampled_from([0.0, 1.0, 7.0, 20.0, 31.0, 500.0, -40.0])),
    min_size=1,
    max_size=60,
)


def chunk(rows, begin=0, *, timed=True):
    tag, time = (np.array(column) for column in zip(*rows, strict=True))
    step = np.arange(begin, begin + len(rows))
    time = time if timed else np.full(len(rows), math.nan)
    return Chunk("", TAGS, tag.astype(np.uint32), step, time, np.ones(len(rows)))


def found(presence, part, position, read_at=math.nan):
    absences = presence.extend(part, position, {RULE: TAGS[1:]}, read_at)
    return [(one.tag, one.index, one.last_step, one.over) for one in absences]


def one_by_one(rows):
    """The same by a loop: what is missed and what comes back, in the order of the points."""
    last = {}
    since = {}
    missing = set()
    before = rows[0][1]
    reports = []
    for place, (code, time) in enumerate(rows):
        if abs(time - before) > RULE.within_seconds:
            since = dict.fromkeys(last, time)
        before = time
        tag = TAGS[code]
        if tag in missing:
            missing.remove(tag)
            reports.append((tag, place, last[tag], True))
        if code:
            last[tag] = place
            since[tag] = time
        for other in [one for one in last if one not in missing]:
            if time - since[other] > RULE.within_seconds:
                missing.add(other)
                reports.append((other, place, last[other], False))
    return reports


@pytest.mark.slow
@given(POINTS, st.sets(st.integers(1, 59)), st.booleans())
def test_absences_do_not_depend_on_the_cut_and_are_those_of_a_loop(points, cuts, restart):
    rows = [*zip([code for code, _ in points], np.cumsum([pause for _, pause in points]), strict=True)]
    presence = MissingTags()
    reports = []
    begin = 0
    for end in sorted({cut for cut in cuts if cut < len(rows)} | {len(rows)}):
        reports += found(presence, chunk(rows[begin:end], begin), begin)
        presence = again(presence) if restart else presence
        begin = end
    assert sorted(reports) == sorted(one_by_one(rows))


def test_a_log_without_times_goes_by_the_clock_of_the_watch():
    rows = [(0, 0.0), (1, 0.0), (0, 0.0)]
    presence = MissingTags()
    assert found(presence, chunk(rows, timed=False), 0, read_at=5.0) == []
    assert found(presence, chunk(rows[:1], 3, timed=False), 3, read_at=25.0) == []
    assert found(presence, chunk(rows[:1], 4, timed=False), 4, read_at=36.0) == [("eval_loss", 4, 1, False)]
    assert found(presence, chunk(rows, 5, timed=False), 5, read_at=37.0) == [("eval_loss", 6, 1, True)]
    assert found(MissingTags(), chunk(rows * 9, timed=False), 0) == [], "a replay has no clock for it"
