"""What stands beside a row, against a reading of the definition that looks at all points for each row."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sentinel.detectors.schema import Every, First, Last, Mean
from sentinel.detectors.signals import Signal
from sentinel.series.asof_join import AsOfJoin, JoinRequest
from sentinel.series.attempts import Points
from tests.series.stored import again

USES = [kind(Signal.LOSS) for kind in (Last, First, Mean, Every)]
TAGS = ["a", "b", "c"]


def points_of(tag, log):
    points = [
        (step, position, value) for position, (logged_tag, step, value) in enumerate(log) if logged_tag == tag
    ]
    step, position, value = (np.array([p[i] for p in points]) for i in range(3))
    return Points(tag, Signal.LOSS, step.astype(np.int64), value * np.nan, position, value.astype(float))


def told(log, cuts):
    """The columns beside the rows of tag "row", whose log arrives in pieces."""
    context = AsOfJoin()
    rows_beside = []
    for begin, end in zip([0, *cuts], [*cuts, len(log)], strict=True):
        piece = [point if begin <= at < end else ("", 0, 0.0) for at, point in enumerate(log)]
        fresh = {tag: points for tag in TAGS if len(points := points_of(tag, piece))}
        known_tags = [t for t in TAGS if any(logged_tag == t for logged_tag, _, _ in log[:end])]
        known_tags.sort(key=[logged_tag for logged_tag, _, _ in log].index)
        context.extend(fresh, USES, {Signal.LOSS: known_tags})
        rows = points_of("row", piece)
        if len(rows):
            ((*numbers, every),) = context.values([JoinRequest("row", rows, USES)], {Signal.LOSS: known_tags})
            numbers = [np.full(len(rows), np.nan) if one is None else one for one in numbers]
            rows_beside += [
                [*(column[i].item() for column in numbers), every[i].tolist()] for i in range(len(rows))
            ]
        context.trim()
        context = again(context)
    return [[last, first, mean, ended(every)] for last, first, mean, every in rows_beside]


def ended(values):
    while values and np.isnan(values[-1]):
        values = values[:-1]
    return values


def defined(log):
    """The same, each row for itself."""
    order = list(dict.fromkeys(logged_tag for logged_tag, _, _ in log if logged_tag in TAGS))
    expected = []
    used = 0
    for at, (logged_tag, step, _) in enumerate(log):
        if logged_tag != "row":
            continue
        row = [np.nan, np.nan, np.nan]
        last = []
        for tag in order:
            once = {}
            for name, logged_step, value in log[:at]:
                if name == tag:
                    once.setdefault(logged_step, value)
            counts = [one for one in once if one != step or one != max(once)]
            has_value = bool(counts) and counts[-1] < step
            last.append(once[counts[-1]] if has_value else np.nan)
            if tag == order[0]:
                new = counts[used:]
                used = max(used, len(counts))
                row[0] = last[0]
                row[1] = once[min(once)] if once and min(once) < step else np.nan
                row[2] = np.mean([once[one] for one in new]) if has_value and new else np.nan
        expected.append([*row, ended(last)])
    return expected


@pytest.mark.long
@settings(max_examples=200, deadline=None)
@given(
    moves=st.lists(st.tuples(st.sampled_from([*TAGS, "row"]), st.sampled_from([0, 0, 1, 1, 2])), max_size=60),
    cuts=st.sets(st.integers(1, 59), max_size=8),
    own_pace=st.booleans(),
)
def test_any_cut_gives_what_is_defined(moves, cuts, own_pace):
    steps = dict.fromkeys([*TAGS, "row"], 0)
    log = []
    for number, (tag, ahead) in enumerate(moves):
        clock = tag if own_pace else "row"  # tags that count differently, or one counter for all
        steps[clock] += ahead
        log.append((tag, steps[clock], float(number**2 % 17)))
    np.testing.assert_equal(
        rounded(told(log, sorted(c for c in cuts if c < len(log)))), rounded(defined(log))
    )


def rounded(rows):
    return [[np.round(cell, 9).tolist() for cell in row] for row in rows]


def test_a_long_pause_between_rows_is_summed_up_and_not_kept():
    context = AsOfJoin()
    uses = [Mean(Signal.LOSS)]
    tags = {Signal.LOSS: ["a"]}
    for step in range(0, 100_000, 1000):
        steps = np.arange(step, step + 1000)
        points = Points("a", Signal.LOSS, steps, steps * 0.0, steps, steps.astype(float))
        context.extend({"a": points}, uses, tags)
        context.trim()
    assert len(context.value) == 4  # two points, the first of all, and the one that precedes all
    end = np.array([100_000])
    row = Points("row", Signal.EVAL_LOSS, end, end * 0.0, end, end * 1.0)
    ((mean,),) = context.values([JoinRequest("row", row, uses)], tags)
    assert mean == [[np.arange(100_000).mean()]]
