"""Data out of pickles, which are never unpickled."""

import os
import pickle
from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sentinel.processes import pickled
from sentinel.processes.pickled import data_of

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**300), 2**300) | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner) | st.tuples(inner, inner) | st.dictionaries(st.text(), inner),
    max_leaves=20,
)


@pytest.mark.long
@given(VALUES, st.integers(2, pickle.HIGHEST_PROTOCOL))
def test_data_come_out_as_they_went_in(value, protocol):
    assert data_of(pickle.dumps(value, protocol)) == value


class Runs:
    def __reduce__(self):
        return os.system, ("false",)


@pytest.mark.parametrize("protocol", range(pickle.HIGHEST_PROTOCOL + 1))
@pytest.mark.parametrize("value", [Runs(), os.getcwd, ValueError("x"), {1, 2}, b"x", 1j])
def test_what_is_no_data_is_refused(value, protocol):
    with pytest.raises(ValueError, match="not data"):
        data_of(pickle.dumps([value], protocol))


@pytest.mark.slow
@given(st.binary(max_size=40))
def test_whatever_else_is_refused_without_more_ado(content):
    with suppress(ValueError):
        assert is_data(data_of(b"\x80\x02" + content + b"."))


def is_data(value):
    match value:
        case dict():
            return all(isinstance(key, str | int) for key in value) and all(map(is_data, value.values()))
        case list() | tuple():
            return all(map(is_data, value))
        case _:
            return value is None or isinstance(value, str | bytes | int | float)


@pytest.mark.long
def test_nesting_without_end_is_no_harm():
    assert len(data_of(b"\x80\x02)" + b"\x85" * 200_000 + b".")) == 1
    with pytest.raises(ValueError, match="key"):
        data_of(b"\x80\x02})" + b"\x85" * 200_000 + b"Ns.")


def test_a_long_one_costs_its_limit(monkeypatch):
    monkeypatch.setattr(pickled, "_MAX_INSTRUCTIONS", 100)
    with pytest.raises(ValueError, match="too long"):
        data_of(pickle.dumps([*range(100)]))


def test_a_large_number_of_a_value_takes_no_room():
    assert data_of(b"\x80\x02Nr\xff\xff\xff\xff.") is None
