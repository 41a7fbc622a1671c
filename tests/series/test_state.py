"""The form of what is stored: who changes it also changes its number, so that no older state is misread."""

from sentinel.incidents.consent import Stored
from sentinel.incidents.track import Track
from sentinel.series.asof_join import Sum
from sentinel.series.attempt import Attempt
from sentinel.series.attempts import Epochs, Points
from sentinel.series.carried import Carried
from sentinel.series.history import SeriesState
from sentinel.series.pace import Clock
from sentinel.series.roles.values import Values
from sentinel.series.rows import Rows
from sentinel.series.specs import STATE
from sentinel.series.standings import Standing
from sentinel.series.step_join import Join
from sentinel.series.stream import StreamState
from sentinel.series.unmapped_shape import Life

FORM = {
    28: (
        "label unit position has_names attempts attempt plans units signals inventory_taker "
        "missing_tags tag_context role_signals values unmapped_nonfinite unmapped_shape "
        "pace points profile_name tags",
        "number sums tags raw_tags carried context joins partners series earlier left_out standings courses "
        "stated_steps",
        "head_rows recent_rows sliced plotted count position earlier head recent coarse checkpoint stages",
        "step numbers columns lists",
        "tag signal step time position value",
        "waiting passed",
        "tags recent verdicts",
        "buckets look",
        "total count end",
        "attempt began_again continues falls first last highest lowest first_step",
        "steps seconds whole",
        "points count first last least most falls rises",
        "points moves turns direction still_points low high top last",
        "key index step time streak last_step last_time findings clean alone before_lost final look interim "
        "doubts doubt_until limits withheld incident",
        "stream tag attempt step opinion",
    )
}


def test_the_form_has_a_number_of_its_own():
    of_streams = (Attempt, SeriesState, Rows, Points, Join, Carried, Standing, Sum, Epochs, Clock, Values)
    stored = (StreamState, *of_streams, Life, Track, Stored)
    form = tuple(" ".join(state.__struct_fields__) for state in stored)
    assert form == FORM[STATE]
