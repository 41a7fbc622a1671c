"""Which runs continue others, and the states of runs that are looked at some at a time."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sentinel.runs.continuations import Member, Observation, kind_of, statuses, successors
from sentinel.runs.log import RunOverview
from sentinel.runs.metadata import RunMetadata, Understanding

STEPS = st.integers(0, 12)
TIMES = st.one_of(st.none(), st.integers(0, 12).map(float))


@st.composite
def facts(draw):
    first, last = sorted((draw(STEPS), draw(STEPS)))
    return RunMetadata(first_step=first, last_step=last, first_time=draw(TIMES), last_time=draw(TIMES))


def continues(later, run):
    """Whether a run goes on from about where another one stopped, as the words say it."""
    from_there = later.first_step > max(run.first_step, 1, run.last_step / 2)
    reached = later.first_step <= run.last_step + max(1, run.first_step)
    since = None not in (later.first_time, run.last_time) and later.first_time >= run.last_time
    return from_there and reached and since and later.last_step > run.last_step


@pytest.mark.slow
@given(st.lists(st.tuples(facts(), st.sampled_from("ab"), st.booleans()), max_size=12))
def test_a_run_is_continued_by_the_first_that_goes_on_from_where_it_stopped(runs):
    members = [Member(str(n), kind, one, is_asked) for n, (one, kind, is_asked) in enumerate(runs)]
    result = successors(members)
    for this in members:
        later = [
            other
            for other in members
            if this.asked and other.kind == this.kind and continues(other.metadata, this.metadata)
        ]
        assert (this.name in result) == bool(later)
        if later:
            (following,) = (other for other in members if other.name == result[this.name])
            assert following in later
            assert following.metadata.first_time == min(other.metadata.first_time for other in later)


def test_states_are_the_same_where_what_continues_lies_elsewhere():
    observations = [
        Observation(
            RunOverview(
                name=name,
                path=f"/runs/{name}.csv",
                format="csv",
                metadata=RunMetadata(
                    first_step=first, last_step=first + 100, first_time=first, last_time=first + 100
                ),
                ending=None,
                attempts=1,
                understanding=Understanding(None, {}, []),
                stopped=None,
            ),
            True,
            0.0,
        )
        for name, first in (("a", 0), ("b", 100))
    ]
    members = [
        Member(look.run.name, kind_of(look.run), look.run.metadata, asked=True) for look in observations
    ]
    result = successors(members)
    assert result == {"a": "b"}
    assert [statuses([look], result)[0] for look in observations] == statuses(observations)
