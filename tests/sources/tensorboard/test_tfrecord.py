import struct
from itertools import pairwise

import google_crc32c
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sentinel.sources.tensorboard import tfrecord
from sentinel.sources.tensorboard.tfrecord import MAX_PAYLOAD, split
from tests.sources.tensorboard.writer import checksum, header, record

MANY = 10**9


def payloads(frames):
    """Of all sound records, in order."""
    found = dict(frames.single)
    for group in frames.groups:
        found |= {int(n): bytes(row) for n, row in zip(group.number, group.rows, strict=True)}
    return [found[number] for number in sorted(found)]


def plainly(data):
    """What split has to find, by the definition of the format: payloads, places of broken records, end."""
    found = []
    broken = []
    position = 0
    lost = False
    while position + 12 <= len(data):
        (length,) = struct.unpack_from("<Q", data, position)
        if data[position : position + 12] != header(length) or length >= MAX_PAYLOAD:
            if not lost:
                broken.append(position)
            lost = True
            position += 1
            continue
        lost = False
        payload = data[position + 12 : position + 12 + length]
        if position + length + 16 > len(data):
            break
        if data[position + 12 + length : position + 16 + length] == checksum(payload):
            found.append(payload)
        else:
            broken.append(position)
        position += length + 16
    return found, broken, position


def alike(count, length=20):
    return [struct.pack(f"<I{length - 4}s", i, b"same in all") for i in range(count)]


@st.composite
def many_payloads(draw):
    """Lengths that repeat, with interruptions, as from a training loop that evaluates now and then."""
    cycle = draw(st.lists(st.integers(0, 40), min_size=1, max_size=8))
    other = draw(st.lists(st.integers(0, 600), max_size=3))
    noise = draw(st.binary(min_size=64, max_size=64)) * 12
    found = []
    for rounds in draw(st.lists(st.integers(0, 900), min_size=1, max_size=3)):
        for i in range(rounds // len(cycle)):
            found += [struct.pack("<I", i)[: length % 4] + noise[:length] for length in cycle]
        found += [noise[:length] for length in other]
    return found


@pytest.mark.slow
@settings(max_examples=60, deadline=None)
@given(written=many_payloads(), data=st.data())
def test_records_are_found_whatever_their_lengths(written, data):
    log = b"".join(map(record, written))
    torn = log + record(b"not all of it is there")[: data.draw(st.integers(0, 37))]
    most = data.draw(st.sampled_from([MANY, 1, 300, 1000]))
    frames = split(torn, most)
    assert payloads(frames) == written[:most]
    assert frames.consumed == len(b"".join(map(record, written[:most])))
    assert not frames.problems


@pytest.mark.long
@settings(max_examples=200, deadline=None)
@given(data=st.data())
def test_damage_costs_no_more_than_it_must(data):
    log = b"".join(map(record, [*alike(100), b"", b"x" * 70, *alike(90, 30)]))
    start = data.draw(st.integers(0, len(log)))
    end = start + data.draw(st.integers(0, 60))
    log = log[:start] + data.draw(st.binary(max_size=60)) + log[end:]
    frames = split(log, MANY)
    found, broken, position = plainly(log)
    assert payloads(frames) == found
    assert frames.consumed == position
    assert {p.offset for p in frames.problems} <= set(broken)
    assert bool(frames.problems) == bool(broken)


@pytest.mark.slow
@settings(max_examples=100, deadline=None)
@given(bit=st.integers(0, 8 * 100 * 36 - 1))
def test_every_flipped_bit_is_noticed(bit):
    log = bytearray(b"".join(map(record, alike(100))))
    log[bit // 8] ^= 1 << bit % 8
    frames = split(bytes(log), MANY)
    assert frames.problems or frames.needed
    hit = bit // 8 // 36
    assert payloads(frames) == alike(100)[:hit] + alike(100)[hit + 1 :]


@pytest.mark.long
@settings(max_examples=100, deadline=None)
@given(data=st.data())
def test_pieces_give_what_the_whole_gives(data):
    log = b"".join(map(record, [b"one", b"", b"three" * 20, b"four", *alike(70), b"five"]))
    start = data.draw(st.integers(0, len(log)))
    log = log[:start] + data.draw(st.binary(max_size=20)) + log[start + data.draw(st.integers(0, 20)) :]
    cuts = [*sorted(data.draw(st.lists(st.integers(0, len(log)), max_size=4))), len(log)]
    found = []
    offset = 0
    lost = False
    for cut in cuts:
        frames = split(log[offset:cut], MANY, lost)
        found += payloads(frames)
        offset = offset + frames.consumed
        lost = frames.lost
    assert (found, offset) == (payloads(split(log, MANY)), split(log, MANY).consumed)


def test_broken_payloads_are_summed_up():
    broken = [record(p)[:-1] + b"?" for p in (b"a", b"b", b"c")]
    frames = split(record(b"first") + b"".join(broken) + record(b"last"), MANY)
    assert payloads(frames) == [b"first", b"last"]
    assert [(p.offset, p.text) for p in frames.problems] == [
        (21, "record does not match its checksum and was skipped (and 2 more up to 34 bytes further on)")
    ]


@pytest.mark.parametrize("claim", [MAX_PAYLOAD, 1 << 60, (1 << 64) - 1])
def test_a_claim_beyond_belief_is_a_broken_header(claim):
    frames = split(record(b"a") + header(claim) + b"some bytes" + record(b"b"), MANY)
    assert payloads(frames) == [b"a", b"b"]
    assert [(p.offset, p.text.partition(";")[0]) for p in frames.problems] == [
        (17, f"record claims to be {claim} bytes long")
    ]


def test_a_long_record_is_waited_for():
    log = record(b"a") + header(1 << 30) + b"its beginning"
    frames = split(log, MANY)
    assert (frames.consumed, frames.needed, frames.problems) == (17, (1 << 30) + 16, [])


@pytest.mark.parametrize("zeros", [1, 5, 11, 12, 13, 40, 100])
def test_zeros_at_the_end_of_the_file_may_be_bytes_on_their_way(zeros):
    log = b"".join(map(record, [b"one", b"two", b"three"]))
    shown = log[: max(len(log) - zeros, 0)] + bytes(zeros)
    frames = split(shown, MANY, at_end=True)
    assert not frames.problems
    assert not frames.lost
    assert frames.needed > len(shown) - frames.consumed or frames.consumed == len(shown)
    rest = split(log[frames.consumed :], MANY, at_end=True)
    assert payloads(frames) + payloads(rest) == [b"one", b"two", b"three"]


def test_zeros_that_something_follows_are_broken():
    frames = split(record(b"one") + bytes(50) + record(b"two"), MANY, at_end=True)
    assert payloads(frames) == [b"one", b"two"]
    assert [p.offset for p in frames.problems] == [19]


@pytest.mark.parametrize("zeros", [0, 1, 5, 11, 12, 13, 300, 1 << 16, (1 << 16) + 7, 200_000])
@pytest.mark.parametrize("noise", [b"", b"x", b"\x01" * 40])
def test_the_next_record_is_found_behind_any_zeros(zeros, noise):
    log = b"broken" * 4 + bytes(zeros) + noise + bytes(zeros)
    assert tfrecord._find_header(log + record(b"payload"), 1) == (len(log), False)


def test_nothing_to_go_by_is_searched_to_the_end():
    for log in (b"\0" * 300_000, b"\xff" * 300_000):
        frames = split(log, MANY)
        assert (frames.lost, len(frames.problems), frames.consumed) == (True, 1, len(log) - 11)
        again = split(log[frames.consumed :] + record(b"sound"), MANY, frames.lost)
        assert (payloads(again), again.problems) == ([b"sound"], [])


@pytest.mark.slow
@given(rows=st.lists(st.binary(min_size=37, max_size=37), min_size=1, max_size=9))
def test_checksums_of_many_rows(rows):
    matrix = np.array([list(row) for row in rows], np.uint8)
    varying = (matrix != matrix[0]).any(axis=0)
    found = tfrecord._checksums(matrix, varying).tolist()
    assert found == list(map(google_crc32c.value, rows))


@pytest.mark.slow
def test_checksums_are_those_of_the_library_for_every_length():
    assert google_crc32c.value(b"123456789") == 0xE3069283
    for length in range(1, tfrecord.MAX_ROW + 1, 51):
        row = np.random.default_rng(length).integers(256, size=(1, length), dtype=np.uint8)
        found = tfrecord._checksums(row, np.ones(length, np.bool_))
        assert found == google_crc32c.value(bytes(row[0]))


@pytest.mark.slow
def test_a_repetition_is_leapt_over_not_walked(monkeypatch):
    leaps = []
    real = tfrecord._leap
    monkeypatch.setattr(tfrecord, "_leap", lambda *a: leaps.append(real(*a)) or leaps[-1])
    lengths = [20, 20, 31, 7, 20]
    log = b"".join(record(bytes([i % 251]) * lengths[i % 5]) for i in range(20_000))
    frames = split(log, MANY)
    assert len(frames.starts) == 20_000
    assert sum(len(starts) for starts, _ in leaps) > 19_000
    assert all(a < b for a, b in pairwise(frames.starts.tolist()))
