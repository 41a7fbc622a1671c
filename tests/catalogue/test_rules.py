"""Rules on causes ask only for what detectors, signals, settings and frameworks are called."""

import re
from pathlib import Path

import msgspec
import pytest

import detectors
from detectors.discovery import all_detectors
from detectors.settings import CHOICES, Setting
from detectors.signals import Signal
from sentinel import catalogue
from sentinel.catalogue.rules import Clues, Rule
from sentinel.frames.naming import profiles

RULES = [(e.id, rule) for e in catalogue.load().values() for rule in (*e.confirms, *e.excludes)]
SUBJECTS = ("finding", "signal", "setting", "framework", "console")
SOURCES = {p.stem.replace("_", "-"): p.read_text() for p in Path(detectors.__path__[0]).rglob("*.py")}

each_rule = pytest.mark.parametrize(("entry", "rule"), RULES, ids=[f"{e}: {r}" for e, r in RULES])


class Told:
    """A log that has had its losses, and settings that ask for a cosine."""

    framework = "trl-sft"

    def logs(self, signal, position):
        return signal == "loss" and position >= 3

    def setting(self, name, position, step):  # noqa: ARG002
        return {"scheduler": "cosine", "peak_learning_rate": 1e-9}.get(name)


@each_rule
def test_a_rule_has_one_subject_and_a_short_reason(entry, rule):
    assert sum(bool(getattr(rule, subject)) for subject in SUBJECTS) == (
        rule.evidence is None or bool(rule.finding)
    )
    assert rule.because == rule.because.strip(" .")
    assert len(rule.because) < 120


@each_rule
def test_a_rule_asks_for_what_there_is(entry, rule):
    assert rule.finding is None or rule.finding in all_detectors()
    assert rule.signal is None or (rule.signal in [*Signal] and rule.is_ in ("logged", "missing"))
    assert rule.setting is None or rule.setting in [*Setting]
    assert not isinstance(rule.is_, str) or not rule.setting or rule.is_ in CHOICES[Setting(rule.setting)]
    assert set(rule.framework) <= profiles().keys()
    if rule.evidence or rule.setting:
        assert (rule.above, rule.below, rule.is_) != (None, None, None)


@each_rule
def test_evidence_is_shown_by_a_detector_that_cites_the_entry(entry, rule):
    showing = (
        [rule.finding] if rule.finding else [n for n, d in all_detectors().items() if entry in d.catalogue]
    )
    for name in filter(None, (rule.evidence, rule.per)):
        assert any(f'"{name}"' in SOURCES[shows] for shows in showing), name


@pytest.mark.parametrize(
    ("front", "holds"),
    [
        ({"finding": "zero-gradient"}, True),
        ({"finding": "kl-blowup"}, False),
        ({"finding": "zero-gradient", "evidence": "share", "above": 0.9}, True),
        ({"finding": "zero-gradient", "evidence": "share", "below": 0.9}, False),
        ({"finding": "kl-blowup", "evidence": "share", "above": 0.9}, False),
        ({"evidence": "fall", "above": 0.1}, True),
        ({"evidence": "fall", "above": 0.2}, False),
        ({"evidence": "fall", "below": 0.3, "above": 0.1}, True),
        ({"evidence": "fall", "is": 0.2}, True),
        ({"evidence": "fall", "per": "spread", "above": 3}, True),
        ({"evidence": "fall", "per": "nothing", "above": -9}, False),
        ({"evidence": "fall", "per": "zero", "above": -9}, False),
        ({"evidence": "unknown", "below": 9}, False),
        ({"signal": "loss", "is": "logged"}, True),
        ({"signal": "update_ratio", "is": "missing"}, True),
        ({"signal": "loss", "is": "missing"}, False),
        ({"setting": "peak_learning_rate", "below": 1e-7}, True),
        ({"setting": "scheduler", "is": "cosine"}, True),
        ({"setting": "optimizer", "is": "sgd"}, False),
        ({"framework": ["hf-trainer", "trl-sft"]}, True),
        ({"framework": ["hf-trainer"]}, False),
        ({"console": "all_?reduce"}, True),
        ({"console": "segfault"}, False),
    ],
)
def test_a_rule_holds_where_the_run_is_so(front, holds):
    evidence = {"fall": 0.2, "spread": 0.05, "zero": 0.0, "text": "Error in allreduce", "unknown": None}
    clues = Clues(evidence, {"zero-gradient": {"share": 1.0}}, Told(), position=3, step=3)
    rule = msgspec.convert({"because": "so", **front}, Rule)
    assert rule.holds(clues) is holds
    known_nothing = Clues({})
    assert not rule.holds(known_nothing)


def test_a_signal_counts_from_its_first_point_on():
    rule = Rule("so", signal="loss", is_="logged")
    assert [rule.holds(Clues({}, {}, Told(), position)) for position in (2, 3)] == [False, True]


def test_a_rule_that_is_none_is_refused():
    with pytest.raises(msgspec.ValidationError, match="unknown field `abov`"):
        msgspec.convert({"because": "so", "evidence": "fall", "abov": 1}, Rule)


@pytest.mark.parametrize("entry", catalogue.load().values(), ids=lambda e: e.id)
def test_look_alikes_have_pages(entry):
    assert set(entry.siblings) <= catalogue.load().keys()


def test_the_page_of_an_entry_lists_its_clues():
    from sentinel.report.pages import page

    shown = page("O3")
    assert "## What in a run confirms it" in shown
    assert re.search(r"^- zero-gradient is open: the gradient norm is exactly 0$", shown, re.MULTILINE)
    assert re.search(r"^- gradient above 0\.0: ", shown, re.MULTILINE)


@pytest.mark.parametrize("entry", catalogue.load().values(), ids=lambda e: e.id)
def test_what_a_page_refers_to_has_a_page(entry):
    text = " ".join((entry.fix, entry.check, entry.body))
    named = re.findall(
        r"(?<![\w/`-])(?:A-[a-z][a-z0-9-]*|G-[a-z-]+|G[ADEV](?:-[a-z0-9]+)?|D[PF]\d+|[GLORVX]\d+)(?![\w/-])",
        text,
    )
    assert set(named) <= catalogue.load().keys()
