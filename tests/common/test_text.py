import math
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sentinel.common.text import clean_text, duration_text, one_of, seconds_in

hostile = st.text(
    st.one_of(st.characters(), st.sampled_from("\x1b[]m0;\x07\x9b\u202e\u2066\r\n\ud800")), max_size=500
)


@pytest.mark.parametrize(
    ("raw", "expected"),
    [
        ("train/loss", "train/loss"),
        ("Verlust übermäßig 損失", "Verlust übermäßig 損失"),
        ("\x1b[31mred\x1b[0m", "red"),
        ("\x1b]0;owned\x07title", "title"),
        ("\x1b]8;;http://a.b\x1b\\link\x1b]8;;\x1b\\", "link"),
        ("\x9b2Jgone", "gone"),
        ("a\x1bcb", "ab"),
        ("one\r\ntwo\tthree", "one two three"),
        ("abc\u202etxt.exe", "abc txt.exe"),
        ("nul\x00 and bell\x07", "nul and bell"),
        ("lone \udcff surrogate", "lone surrogate"),
        ("  ", ""),
    ],
)
def test_shows_only_what_has_a_shape(raw, expected):
    assert clean_text(raw) == expected


@pytest.mark.slow
@given(hostile, st.integers(1, 60))
def test_any_text_becomes_one_bounded_printable_line(text, limit):
    line = clean_text(text, limit)
    assert len(line) <= limit
    assert not {unicodedata.category(c) for c in line} & {"Cc", "Cf", "Cs", "Co", "Zl", "Zp"}
    line.encode()


@pytest.mark.slow  # many examples
@given(hostile)
def test_clean_text_stays_as_it_is(text):
    once = clean_text(text)
    assert clean_text(once) == once


def test_a_long_text_is_cut_and_says_so():
    assert clean_text("x" * 1_000_000, 10) == "x" * 9 + "…"
    assert clean_text("\x00" * 1_000_000 + "x", 10) == "…"
    assert (
        clean_text("\x90" * 100_000 + "x", 1 << 20) == "x"
    )  # were it quadratic, this would not come to an end


@pytest.mark.parametrize(
    ("seconds", "words"),
    [
        (0, "0 s"),
        (-3, "0 s"),
        (40.2, "40 s"),
        (725, "12 min 5 s"),
        (3600, "1 h"),
        (12000, "3 h 20 min"),
        (187200, "2 d 4 h"),
    ],
)
def test_durations_read_as_people_say_them(seconds, words):
    assert duration_text(seconds) == words


@pytest.mark.parametrize(
    ("words", "seconds"), [("90s", 90), ("30m", 1800), ("2h", 7200), ("1.5d", 129600), ("1w", 604800)]
)
def test_a_duration_is_read(words, seconds):
    assert seconds_in(words) == seconds


@pytest.mark.parametrize("words", ["", "1", "0h", "-1h", "2y", "1 h", "1h30m", "9" * 400 + "d", "\u0663h"])
def test_what_is_no_duration(words):
    with pytest.raises(ValueError, match="write 30m, 2h, 1d or 1w"):
        seconds_in(words)


def test_no_duration_that_a_person_writes_is_longer_than_ten_years():
    assert seconds_in("520w") == 520 * 7 * 86400
    with pytest.raises(ValueError, match="longer than ten years"):
        seconds_in("999999999999999999w")


@pytest.mark.parametrize("seconds", [math.inf, math.nan, 1e300])
def test_a_duration_of_ages_has_words_too(seconds):
    assert duration_text(seconds) == "over 100 years"


def test_a_choice_is_said_in_words():
    assert one_of(["a"]) == "a"
    assert one_of(iter("ab")) == "a or b"
    assert one_of("abc") == "a, b or c"
