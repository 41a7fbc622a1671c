from fnmatch import fnmatchcase
from time import perf_counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sentinel.common.globs import MAX_GLOB, GlobTooLong, bounded, matches

GLOBS = st.text("ab-]![*?/", max_size=12)
NAMES = st.text("ab-]![/", max_size=12)


@given(NAMES, GLOBS)
def test_globs_are_those_of_the_standard_library(name, glob):
    assert matches(name, glob) == fnmatchcase(name, glob)


@pytest.mark.parametrize(
    ("glob", "name"),
    [
        ("[" * 16_000, "/data/runs/a" * 300),
        ("*" + "[" * 16_000, "/data/runs/a" * 300),
        ("*a" * 2000, "a" * 4000),
        ("*" + "a" * 4000 + "b", "a" * 4000),
        ("*" + "?" * 4000 + "b", "a" * 4000),
        ("[!b]" * 3000, "a" * 4000),
        ("[a" * 8000, "[a" * 2000),
    ],
)
def test_the_time_is_linear_in_the_name(glob, name):
    matches(name, glob)
    begin = perf_counter()
    matches(name[: len(name) // 8], glob)
    eighth = perf_counter() - begin
    begin = perf_counter()
    matches(name, glob)
    assert perf_counter() - begin < 64 * eighth + 1.0


def test_a_glob_may_be_an_escaped_path_and_no_longer():
    assert bounded("[" * MAX_GLOB)
    with pytest.raises(GlobTooLong, match="may have 12,288 characters, and this one has 16,000"):
        bounded("[" * 16_000)
