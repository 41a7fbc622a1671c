"""What the page of a detector says stands in its code."""

import ast
import inspect
import re
import sys

import pytest

from sentinel import catalogue
from sentinel.detectors.api import Detector
from sentinel.detectors.discovery import all_detectors
from sentinel.detectors.interims import is_interim
from tests.each import each

NUMBER = re.compile(r"(?<![\w.`^-])(\d[\d,]*(?:\.\d+)?)(?: ?(%|th percentile))?(?![\w.]*\w)")
NAME = re.compile(r"`([a-z]+(?:-[a-z]+)+)`")

OTHERS = {"all-linear", "nccl-tests", "nvidia-smi"}
"""What stands between backticks, looks like the name of a detector, and is none."""

COMPUTED = {
    ("pretrained-regression", "1.2"),
    ("loss-accuracy-mismatch", "15.9"),
    ("loss-accuracy-mismatch", "16.1"),
}
"""Numbers of a page that a formula gives."""

each_detector = each((d for d in all_detectors().values() if isinstance(d, Detector)), lambda d: d.name)


def numbers(rule):
    """The numbers in the code of a rule's module and of the modules of this library that it uses."""
    found = set()
    left = [rule.__module__]
    seen = {"sentinel.detectors.api", "sentinel.detectors"}
    while left:
        if (module := left.pop()) in seen:
            continue
        seen.add(module)
        for node in ast.walk(ast.parse(inspect.getsource(sys.modules[module]))):
            if isinstance(node, ast.Constant) and isinstance(node.value, int | float):
                found.add(float(node.value))
            elif isinstance(node, ast.ImportFrom) and (node.module or "").startswith("sentinel.detectors"):
                left.append(node.module)
    return found


def told(page):
    """The numbers that a page says the detector rests on, as they would stand in the code."""
    catches = page.split("## What it catches\n")[1].split("\n## ")[0]
    for found in NUMBER.finditer(catches):
        value = float(found[1].replace(",", ""))
        yield found[0], value / 100 if found[2] else value


@each(all_detectors().values(), lambda rule: rule.name)
def test_a_page_begins_its_advice_with_the_first_thing_to_do(rule):
    for variant in rule.variants:
        assert re.fullmatch(r"[A-Z].{10,300}[.]", rule.first_step(variant))


@pytest.mark.long
@each_detector
def test_the_numbers_of_a_page_stand_in_the_code(detector):
    code = numbers(detector.rule)
    for text, value in told(detector.doc):
        forms = {value, 1 - value, 1 + value, 1 / value if value else 0}
        is_at_interim = detector.at_interims and value.is_integer() and is_interim(int(value))
        known = (detector.name, text) in COMPUTED or is_at_interim
        assert known or any(abs(form - one) < 1e-9 for form in forms for one in code), (
            f"{text!r} is not in the code"
        )


def test_detectors_that_a_page_names_exist():
    pages = {d.name: d.doc for d in all_detectors().values()}
    pages |= {e.id: f"{e.body} {e.visibility}" for e in catalogue.load().values()}
    named = {(page, name) for page, text in pages.items() for name in NAME.findall(text)}
    assert {name for _, name in named} & {*all_detectors()}
    assert [one for one in named if one[1] not in {*all_detectors(), *OTHERS}] == []
