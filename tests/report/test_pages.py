"""The page of a detector says what it tells, when it is wrong, when it does not judge, and how that looks."""

import pytest

from sentinel.detectors.api import Detector
from sentinel.detectors.discovery import all_detectors
from sentinel.report.pages import EXAMPLES, page
from tests.each import each
from tests.tools import examples

pytestmark = pytest.mark.slow

HEADINGS = ["What it catches", "Why it matters", "What to do", "When it is wrong", "When it does not judge"]


def test_the_examples_are_those_of_the_goldens():
    assert EXAMPLES.read_text(encoding="utf-8") == examples.written(), "run `make docs`"


@each(all_detectors())
def test_false_alarms_and_guards_have_a_heading_each(name):
    lines = page(name).splitlines()
    headings = [line.removeprefix("## ") for line in lines if line.startswith("## ")]
    assert headings[: len(HEADINGS)] == HEADINGS
    after = lines[lines.index("## When it does not judge") + 1 :]
    assert any(line.strip() for line in after[: after.index("## Source")])


@each([name for name, detector in all_detectors().items() if isinstance(detector, Detector)])
def test_a_rule_is_shown_as_a_picture_in_text(name):
    lines = page(name).splitlines()
    drawn = lines[lines.index("## What it looks like") + 1 : lines.index("## Source")]
    assert all(line.startswith("    ") for line in drawn if line)
    assert any("^" in line for line in drawn), "a mark below the curve"
    assert any(line.startswith("    step ") for line in drawn), "what is said, and where"
