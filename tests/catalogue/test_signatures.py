"""Each signature finds the lines that it is made for, and nothing that healthy trainings print."""

import re
import tomllib
from pathlib import Path

import msgspec
import pytest

import sentinel
from sentinel import catalogue
from sentinel.catalogue import Signature
from sentinel.runs.console import MAX_LINE, ConsoleState
from tests.each import each

HERE = Path(__file__).parent
LINES = tomllib.loads((HERE / "console_lines.toml").read_text())["line"]
ROOT = Path(sentinel.__path__[0]).parent
HEALTHY = [
    path
    for path in sorted((ROOT / "tests" / "frameworks").rglob("*"))
    if path.suffix in (".log", ".out", ".txt")
]


def printed(line):
    """What a training prints that ends in this line."""
    if "frames" not in line:
        return f"{line['text']}\n"
    frames = "".join(f'  File "{frame}\n    step()\n' for frame in line["frames"])
    return f"Traceback (most recent call last):\n{frames}{line['text']}\n"


@pytest.mark.slow
@each(LINES, lambda line: line["text"][:60])
def test_a_line_names_its_entries(line):
    console = ConsoleState()
    ends = line.get("ends", True)
    news = [*console.scan_text("train.log", printed(line), catalogue.signatures())]
    noted = sorted(remark.entry for remark in console.remarks.values())
    assert ([list(one.catalogue) for one in news], noted) == (
        ([line["entries"]], []) if ends else ([], sorted(line["entries"]))
    )


@each(catalogue.signatures(), lambda one: one.key)
def test_each_signature_has_a_line(signature):
    assert any(
        signature.is_in(line["text"], "\n".join(line.get("frames", ())))
        for line in LINES
        if signature.entry in line["entries"]
    )


@each(catalogue.signatures(), lambda one: one.key)
def test_a_signature_takes_little_time(signature):
    pattern = signature.pattern or ""
    assert len(signature.text) < MAX_LINE
    assert not re.search(r"(?<!\\)[*+](?!\+)|\{\d+,\}", pattern), "bound what may repeat"


def test_no_two_signatures_are_alike():
    keys = [one.key for one in catalogue.signatures()]
    assert len({*keys}) == len(keys)


@pytest.mark.parametrize("path", HEALTHY, ids=lambda path: str(path.relative_to(ROOT / "tests")))
def test_healthy_trainings_print_no_signature_of_an_error(path):
    text = path.read_text(errors="replace") + "\n"
    assert [*ConsoleState().scan_text(path.name, text, catalogue.signatures())] == []


def test_a_remark_is_kept_once():
    console = ConsoleState()
    line = "Setting `pad_token_id` to `eos_token_id`:{} for open-end generation.\n"
    for token in (4, 2):
        assert [*console.scan_text("train.log", line.format(token), catalogue.signatures())] == []
    (remark,) = console.remarks.values()
    assert (remark.entry, remark.origin, remark.line) == ("L3", "train.log", 1)
    assert "`eos_token_id`:4" in remark.text
    again = msgspec.convert(msgspec.to_builtins(console), ConsoleState)
    assert again.remarks == console.remarks


def test_a_signature_that_is_none_is_refused():
    with pytest.raises(msgspec.ValidationError, match="unknown field `patern`"):
        msgspec.convert({"text": "a", "severity": "info", "patern": "b"}, Signature)
