"""The form of what is stored: who changes it also changes its number, so that no older state is misread."""

from sentinel.series.state_schema import STATE, AttemptState, SeriesState, StreamState

FORM = {
    20: (
        "position first_points has_names profile attempts attempt tags plans units "
        "signals inventory_taker missing_tags tag_context "
        "role_signals values unmapped_nonfinite unmapped_shape pace",
        "number sums tags raw_tags context joins partners series earlier left_out standings courses",
        "head_rows recent_rows sliced plotted rows position earlier head recent coarse checkpoint",
    )
}


def test_the_form_has_a_number_of_its_own():
    assert tuple(" ".join(state._fields) for state in (StreamState, AttemptState, SeriesState)) == FORM[STATE]
