"""Lines that hold one of some words are found without a look at each line."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sentinel.runs.telling import telling

pytestmark = pytest.mark.long

TEXTS = st.lists(st.text(st.sampled_from(["a", "b", " ", "é", "\ud800", "\0"]), max_size=6), max_size=12)


@given(TEXTS)
def test_it_finds_what_a_look_at_each_line_finds(lines):
    expected = set()
    for place, line in enumerate([*lines, "ab"]):
        if "ab" in line or "bé" in line:
            full = [at for at in range(place) if lines[at].strip()]
            expected |= {place, *full[-1:]}
    assert telling(lines, ["ab", "bé"]) == sorted(expected - {len(lines)})
