import io
import json

import pytest

from sentinel.mcp_server.standard_input import WholeText, whole


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        (rb'"\ud800"', "\ufffd"),
        (rb'"\udc00\ud800"', "\ufffd\ufffd"),
        (rb'"\uD83D\uDE00 \u00e9"', "😀 é"),
        (rb'"\\ud800 \n"', "\\ud800 \n"),
        (rb'"\\\ud800"', "\\\ufffd"),
        (rb'"\ud800\ud83d\ude00"', "\ufffd😀"),
        (b'"caf\xc3\xa9"', "café"),
    ],
)
def test_half_a_pair_becomes_a_replacement_character(line, expected):
    assert json.loads(whole(line)) == expected


@pytest.mark.parametrize("line", [b"\\", b"\\u", rb"\ud8", rb"\ud800\u", b""])
def test_what_is_no_json_is_left_to_who_reads_it(line):
    assert whole(line) in (line, line.replace(rb"\ud800", rb"\ufffd"))


def test_lines_come_in_parts_of_any_size():
    lines = b'{"a": "\\ud800"}\n' * 3 + b"x" * 100_000
    reader = io.BufferedReader(WholeText(io.BytesIO(lines)), 16)
    assert reader.readline() == b'{"a": "\\ufffd"}\n'
    assert len(reader.read()) == 2 * 16 + 100_000
