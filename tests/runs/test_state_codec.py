"""The state of a run comes back as it was, and takes little room."""

import zlib

import msgspec
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import array_shapes, arrays

from sentinel.runs.state_codec import packed, unpacked

ARRAYS = st.sampled_from(["<f8", "<i8", "|b1"]).flatmap(
    lambda kind: arrays(kind, array_shapes(min_dims=1, max_dims=3, min_side=0, max_side=5))
)


@pytest.mark.slow
@given(ARRAYS, st.booleans())
def test_an_array_comes_back_as_it_was(array, lasting):
    back = unpacked(packed({"a": array}, lasting=lasting))["a"]
    assert (back.dtype, back.shape, back.tobytes()) == (array.dtype, array.shape, array.tobytes())
    assert back.flags.c_contiguous
    assert back.flags.writeable


def test_an_array_without_dimensions_comes_back():
    assert unpacked(packed({"a": np.array(2.5)}))["a"] == 2.5


def test_a_history_takes_two_fifths_of_its_room():
    dice = np.random.default_rng(1)
    steps = np.arange(256) * 10
    times = 1.7e9 + np.arange(256) * 2.5 + dice.normal(0, 0.01, 256)
    losses = 2 / (1 + 0.01 * np.arange(256)) + dice.normal(0, 0.02, 256)
    numbers = np.stack([times, losses], axis=1)
    assert len(packed({"places": np.stack([steps, steps], axis=1), "numbers": numbers})) < 256 * 4 * 8 * 2 / 5


def test_a_lasting_state_says_once_what_it_holds_often():
    rows = np.random.default_rng(1).normal(0, 1, 8192)
    state = {"a": rows, "b": rows[4096:], "c": rows.copy()}
    assert len(packed(state, lasting=True)) < 1.1 * rows.nbytes < 2 * len(packed(state))


@pytest.mark.parametrize(
    "damaged",
    [
        b"",
        b"\xc1\xc1",
        packed({"a": np.arange(100)})[:-20],
        b"\x78" + b"no zlib",
        packed({"a": 1})[:-1] + b"\x00",
        packed({"a": np.arange(100)}, lasting=True)[:-20],
        b"\xfd" + b"no lzma",
        msgspec.msgpack.encode({"a": 1}),
        zlib.compress(msgspec.msgpack.encode([1])),
        zlib.compress(msgspec.msgpack.encode({"a": msgspec.msgpack.Ext(7, b"")})),
    ],
)
def test_what_it_did_not_make_is_refused(damaged):
    with pytest.raises(msgspec.DecodeError):
        unpacked(damaged)
