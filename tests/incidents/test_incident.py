import math

import pytest

from sentinel.incidents.incident import format_message, lasted_text


@pytest.mark.parametrize(
    ("message", "values", "expected"),
    [
        ("at {value:.2f}", {"value": 3.14159}, "at 3.14"),
        ("at {value:.2f}", {"value": None}, "at ?"),
        ("at {value:.2f}", {}, "at ?"),
        ("at {value:.2f}", {"value": math.nan}, "at nan"),
        ("at {value:.0%} of {n:d}", {"value": 0.5, "n": 2.0}, "at 50% of 2.0"),
        ("at {value:.2f}", {"value": "text"}, "at text"),
        ("at {value!r}", {"value": "{x}"}, "at '{x}'"),  # values are not formats
        ("at {value.a} {value[b]}", {"value": 1}, "at ? ?"),
        ("{{literally}}", {}, "{literally}"),
    ],
)
def test_a_message_is_formatted_whatever_the_values(message, values, expected):
    assert format_message(message, values) == expected


def test_a_time_below_a_second_is_not_told():
    assert lasted_text(480, 0.3) == lasted_text(480, None) == "480 steps"
    assert lasted_text(1, 61.0) == "1 step (1 min 1 s)"
