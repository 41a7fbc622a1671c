"""A log is a copy that a tool renews while the training goes on: what was read is not read again."""

import os
from itertools import pairwise

import pytest

from tests.sources.copying import WAYS
from tests.sources.reader import Reader
from tests.sources.runs import (
    FROM_THE_SECOND_ON,
    IN_TRANSACTIONS,
    REWRITTEN,
    STEPS,
    contents,
    files,
    ordered,
    play,
    points,
)


@pytest.mark.slow
@pytest.mark.parametrize("renew", WAYS)
def test_a_copy_that_is_renewed_goes_on(source, writer, renew, logged, tmp_path):
    original = tmp_path / "original"
    copy = tmp_path / "copy"
    original.mkdir()
    copy.mkdir()
    reader = Reader(copy)
    writer.start(original)
    for count, (step, values) in enumerate(STEPS, 1):
        writer.log(step, values)
        renew(original, copy)
        seen = 0 if count == 1 and source in FROM_THE_SECOND_ON else count
        assert ordered(source, reader.poll().points) == ordered(source, points(STEPS[:seen]))
    writer.close()
    renew(original, copy)
    assert ordered(source, reader.poll().points) == ordered(source, points(STEPS))
    assert not reader.restarts
    assert not reader.read_issues


@pytest.mark.slow
@pytest.mark.parametrize("pieces", [1, 2, 8])
def test_a_file_that_grows_back_goes_on(source, logged, pieces):
    """As `cp` and `scp` do: cut the file, then write it piece by piece."""
    data = contents(logged)
    reader = Reader(logged).poll()
    for path in files(logged):
        path.write_bytes(b"")
    size = sum(map(len, data.values()))
    bounds = [size * i // pieces for i in range(pieces + 1)]
    for begin, end in pairwise(bounds):
        reader.poll()
        play(logged, data, begin, end)
    assert reader.poll().points == points(STEPS)
    assert not reader.restarts
    assert bool(reader.read_issues) == (source in IN_TRANSACTIONS)


def test_a_file_that_stays_shorter_is_read_again(source, logged):
    reader = Reader(logged).poll()
    for path in files(logged):
        os.truncate(path, path.stat().st_size // 2)
    again = reader.poll().poll().points[len(points(STEPS)) :]
    assert again == points(STEPS)[: len(again)]
    assert reader.restarts == bool(again) == (source not in REWRITTEN)
