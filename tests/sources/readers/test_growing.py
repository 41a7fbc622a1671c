"""Lines come whole, whatever is asked for at once."""

import io

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from sentinel.sources.csv import file as csv_file
from sentinel.sources.json import lines as jsonl
from sentinel.sources.readers import growing
from sentinel.sources.readers.growing import read_lines, read_new
from tests.sources.reader import Reader

pytestmark = pytest.mark.long

LONGEST = 40
LINES = st.lists(st.integers(0, 3 * LONGEST).map(lambda n: b"x" * n + b"\n"), max_size=12).map(b"".join)


@settings(max_examples=300, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=LINES, size=st.integers(1, 500))
def test_nothing_comes_behind_an_overlong_line(tmp_path, data, size):
    path = tmp_path / "log"
    path.write_bytes(data)
    mark = {}
    found = b""
    while (read := read_lines(path, mark, size, LONGEST)) is not None:
        *whole, rest = read.data.split(b"\n")
        assert all(len(line) < LONGEST for line in whole)
        assert whole or len(rest) == LONGEST
        consumed = len(read.data) - len(rest) if whole else len(read.data)
        found += read.data[:consumed]
        mark = read.mark(consumed)
    assert found == data


@pytest.mark.parametrize(
    ("module", "begin", "row", "overlong"),
    [
        (jsonl, "", '{"step": %d, "loss": 0.5}\n', '{"step": 1, "text": "%s"}\n'),
        (csv_file, "step,loss\n", "%d,0.5\n", '1,"%s"\n'),
    ],
)
def test_a_line_is_as_overlong_in_a_large_piece_as_in_a_small_one(
    tmp_path, monkeypatch, module, begin, row, overlong
):
    monkeypatch.setattr(module, "MAX_LINE", 100_000)
    path = tmp_path / f"metrics.{'csv' if module is csv_file else 'jsonl'}"
    rows = "".join(row % i for i in range(30_000))
    path.write_text(begin + rows + overlong % ("x" * 150_000) + rows)
    large, small = (Reader(path).poll(limit) for limit in (10**6, 1000))
    assert large.points == small.points
    assert large.read_issues == small.read_issues != []


def test_a_file_that_is_saved_anew_while_it_is_read_is_not_replaced(tmp_path, monkeypatch):
    """The size is of the file before, and the bytes are of a file that is empty for a moment."""
    path = tmp_path / "metrics.jsonl"
    row = '{"step": 1, "loss": 0.5}\n'

    class Saving(io.FileIO):
        def read(self, size):
            path.write_text("")
            bytes_read = super().read(size)
            path.write_text(5 * row)
            return bytes_read

    path.write_text(3 * row)
    mark = read_new(path, {}, 1000).mark(3 * len(row))
    path.write_text(4 * row)
    monkeypatch.setattr(growing, "open_log", Saving)
    assert read_new(path, mark, 1000) is None
    monkeypatch.undo()
    piece = read_new(path, mark, 1000)
    assert (piece.data.decode(), piece.restarted) == (2 * row, False)
