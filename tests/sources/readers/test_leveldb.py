import random

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from sentinel.sources.readers import leveldb as leveldb_log
from sentinel.sources.readers.leveldb import split
from tests.sources.wandb.log_writer import (
    BLOCK,
    CHUNK_HEADER,
    FIRST,
    FULL,
    HEADER,
    LAST,
    MIDDLE,
    chunk,
    framed,
)


def log_of(payloads):
    data = bytearray(HEADER)
    ends = []
    for payload in payloads:
        data += framed(payload, len(data))
        ends.append(len(data))
    return bytes(data), ends


def of_length(*lengths):
    return [random.Random(i).randbytes(length) for i, length in enumerate(lengths)]


def whole(data, at_end=True):
    return split(data, len(HEADER), 0, at_end)


ROOM = BLOCK - len(HEADER) - CHUNK_HEADER


@pytest.mark.parametrize("length", [0, 1, *range(ROOM - CHUNK_HEADER - 1, ROOM + 2), 3 * BLOCK])
def test_records_over_block_ends(length):
    payloads = of_length(length, 20, 0, BLOCK, 5)
    data, ends = log_of(payloads)
    log = whole(data)
    assert log.records == payloads
    assert log.ends == ends
    assert log.consumed == len(data)
    assert not log.problems


@pytest.mark.slow
@given(st.integers(0, 4 * BLOCK), st.integers(0, 2))
@example(BLOCK, 1)
def test_reading_goes_on_anywhere(cut, zeros):
    payloads = of_length(100, BLOCK - 150, 70, BLOCK + 9, 3, 40, 2 * BLOCK)
    data, _ = log_of(payloads)
    first = whole(data[:cut] + bytes(zeros * 1000))
    assert not first.problems
    again = split(data[first.consumed :], 0 if first.consumed else len(HEADER), first.consumed, True)
    assert [*first.records, *again.records] == payloads


def test_a_broken_record_costs_only_itself():
    payloads = of_length(*[300] * 400)
    data, ends = log_of(payloads)
    for at in (ends[4] + 3, ends[4] + 5, ends[4] + 6, ends[4] + 50):  # checksum, length, type, payload
        log = whole(data[:at] + bytes([data[at] ^ 0x80]) + data[at + 1 :])
        assert log.records == payloads[:5] + payloads[6:]
        assert [problem.offset for problem in log.problems] == [ends[4]]


def test_a_broken_block_costs_the_records_in_it():
    payloads = of_length(*[300] * 400)
    data, ends = log_of(payloads)
    log = whole(data[:BLOCK] + bytes(BLOCK) + data[2 * BLOCK :])
    before = sum(end <= BLOCK for end in ends)
    after = sum(end > 2 * BLOCK for end in ends) - 1  # the first begins in the broken block
    assert log.records == payloads[:before] + payloads[-after:]
    assert [problem.offset for problem in log.problems] == [BLOCK]


def test_the_last_record_is_not_called_broken_while_more_may_come():
    data, ends = log_of(of_length(50, 50))
    log = whole(data[:-1] + b"?")
    assert log.consumed == ends[0]
    assert not log.problems


def test_a_continuation_without_a_beginning_is_skipped():
    data = HEADER + chunk(MIDDLE, b"a") + chunk(LAST, b"b") + framed(b"sound", 23) + chunk(FIRST, b"c")
    log = whole(data + framed(b"last", 0))
    assert log.records == [b"sound", b"last"]


def test_an_overlong_record_is_skipped(monkeypatch):
    monkeypatch.setattr(leveldb_log, "MAX_RECORD", 3 * BLOCK)
    payloads = of_length(5, 6 * BLOCK, 7)
    data, ends = log_of(payloads)
    log = whole(data)
    assert log.records == [payloads[0], payloads[2]]
    assert [problem.offset for problem in log.problems] == [ends[0]]
    assert whole(data[: 5 * BLOCK], at_end=False).consumed > 3 * BLOCK


@pytest.mark.slow
@given(st.binary(max_size=3000), st.booleans())
def test_any_bytes(data, at_end):
    log = split(data, 0, 0, at_end)
    assert 0 <= log.consumed <= len(data)


def test_of_a_block_with_many_broken_chunks_the_rest_is_skipped(monkeypatch):
    searches = []
    search = leveldb_log._sound_chunk
    monkeypatch.setattr(leveldb_log, "_sound_chunk", lambda *where: searches.append(where) or search(*where))
    pair = bytes(CHUNK_HEADER - 1) + b"\x01" + chunk(FULL, b"")  # a broken one, and a sound one behind it
    filler = pair * ((BLOCK - len(HEADER)) // len(pair))
    data = HEADER + filler.ljust(BLOCK - len(HEADER), b"\0")
    log = whole(data + framed(b"sound", len(data)))
    assert log.records[-1] == b"sound"
    assert len(searches) < len(filler) // len(pair) // 10
