"""Points do not depend on how a text was cut, the state survives a restart, and hostile text stays cheap."""

import json
import time
from itertools import pairwise

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from sentinel.sources.console.recurring import RecurringLines
from sentinel.sources.csv.delimited import Table
from sentinel.sources.general.content import judge
from sentinel.sources.json import tree
from sentinel.sources.readers.redrawn_lines import end_of_lines
from sentinel.sources.readers.templates import mask, template

pytestmark = pytest.mark.slow

NUMBERS = st.one_of(
    st.floats(allow_nan=True).map(str),
    st.integers(-10, 10**9).map(str),
    st.sampled_from(["4K", "1,234", "0.64%", "tensor(2.3, device='cuda:0')", "nan", "inf", "00:12", "1.2.3"]),
)
LINES = st.one_of(
    st.builds("Epoch {}/{} | loss: {} | acc {}%".format, st.integers(0, 9), st.just(9), NUMBERS, NUMBERS),
    st.builds("step {} loss={} lr={}".format, st.integers(0, 99), NUMBERS, NUMBERS),
    st.builds("[rank{}]: iter {}: loss {}".format, st.integers(0, 3), st.integers(0, 9), NUMBERS),
    st.builds("| train/loss | {} |".format, NUMBERS),
    st.just("-----------"),
    st.builds("{{'loss': {},".format, NUMBERS),
    st.builds(" 'acc': {}}}".format, NUMBERS),
    st.builds(
        "Epoch {}: 10%|#  | {}/10 [00:0{}<00:09, loss={}]\r".format,
        st.integers(0, 3),
        st.integers(0, 9),
        st.integers(0, 9),
        NUMBERS,
    ),
    NUMBERS,
    st.builds("{},{}".format, NUMBERS, NUMBERS),
    st.text(max_size=60),
)
TEXTS = st.lists(LINES, max_size=60).map(lambda lines: "\n".join(lines).encode("utf-8", "replace"))
CUTS = st.lists(st.integers(0, 4000), max_size=12)

HOSTILE = [
    "1" * 8000,
    "1," * 4000,
    "(" * 8000,
    "a=" * 4000,
    " " * 8000 + "1",
    "%|" * 4000,
    "loss: " + "[" * 8000,
    "-" * 8000,
    "1:" * 4000,
    "a " * 4000,
    "\x1b[" * 4000,
    "{'a': " * 1300,
    "2020-01-01 00:00:00 " * 400,
    "is " * 2600 + "1",
    "1.1." * 2000,
]

NAMES = [
    ("Epoch 006 | train loss 0.2765 val loss 0.5805", {"train loss": "0.2765", "val loss": "0.5805"}),
    ("EPOCH[26/50] loss0.033", {"loss": "0.033"}),
    ("idx: 0loss: tensor(8.4650, grad_fn=<NegBackward>)", {"loss": "8.4650"}),
    ("NCE Loss at epoch 8 and iteration 1000 is 0.92", {"NCE Loss": "0.92", "iteration": "1000"}),
    (
        "{'loss': 0.4117, 'learning_rate': 4.9e-05, 'epoch': 0.01}",
        {"loss": "0.4117", "learning_rate": "4.9e-05"},
    ),
    (
        "precision: 0.7590, recall: 0.5948, fscore: 0.6670",
        {"precision": "0.7590", "recall": "0.5948", "fscore": "0.6670"},
    ),
    ("2020-03-26 23:41:03,136 - log - INFO -   ORG: precision: 22.33%", {"ORG precision": "22.33"}),
]


def parts(data, cuts):
    """The data in pieces that end with a line."""
    whole = data[: end_of_lines(data)]
    ends = {end_of_lines(whole[: cut % (len(whole) + 1)]) for cut in cuts}
    places = sorted({0, len(whole), *ends})
    return [whole[a:b] for a, b in pairwise(places)], data[len(whole) :]


@pytest.mark.long
@pytest.mark.parametrize("reader", [RecurringLines, Table])
@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(data=TEXTS, cuts=CUTS)
def test_any_cut_and_any_restart_give_the_same_rows(reader, data, cuts):
    pieces, torn = parts(data, cuts)
    whole = reader("log")
    expected = whole.read(b"".join(pieces)) + whole.end(torn)
    again = reader("log")
    rows = []
    for piece in pieces:
        rows += again.read(piece)
        again = reader("log", json.loads(json.dumps(again.dump())))
    rows += again.end(torn)
    assert repr(rows) == repr(expected)


@pytest.mark.long
@settings(max_examples=200, deadline=None)
@given(st.binary(max_size=4000))
def test_no_bytes_raise_an_error(data):
    RecurringLines("log").read(data + b"\n")
    Table("log").read(data + b"\n")
    tree.read(data, "log")
    judge(data, "log.txt")


@pytest.mark.parametrize("line", HOSTILE)
def test_hostile_lines_take_linear_time(line):
    begin = time.process_time()
    RecurringLines("log").read((line + "\n").encode() * 20)
    assert time.process_time() - begin < 1.0


@pytest.mark.long
def test_the_state_is_bounded():
    reader = RecurringLines("log")
    for number in range(20000):
        name = "".join(chr(97 + (number // 26**k) % 26) for k in range(4))
        reader.read(f"{name} loss: 0.{number} step {number}\n".encode())
    assert len(json.dumps(reader.dump())) < 2_000_000


@pytest.mark.parametrize(("line", "expected"), NAMES)
def test_slots_have_the_names_that_people_read(line, expected):
    masked, numbers = mask(line)
    assert {name: numbers[at] for at, name in template(masked).values if name != "epoch"} == expected


@pytest.mark.parametrize("epoch", ["0.5", "nan", "inf", "1e300", "-1e300"])
def test_rows_that_wait_for_a_bar_can_be_kept(epoch):
    reader = RecurringLines("log")
    bar = " 10%|#         | {0}/90 [00:0{1}<00:09,  1.0it/s]\r"
    lines = [f"{bar.format(n * 10, n)}\n{{'loss': nan, 'epoch': {epoch}}}\n" for n in range(1, 8)]
    rows = reader.read("".join(lines).encode())
    again = RecurringLines("log", json.loads(json.dumps(reader.dump(), allow_nan=False)))
    rows += again.end()
    assert all(-(2**62) < row.step < 2**62 for row in rows)
    assert rows
