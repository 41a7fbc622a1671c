"""Rules on causes ask only for what detectors, signals, settings and frameworks are called."""

import re

import msgspec
import pytest

from sentinel import catalogue
from sentinel.catalogue.rules import MISSING, UNKNOWN, CauseRule, Clues
from sentinel.detectors.discovery import all_detectors
from sentinel.detectors.settings import CHOICES, Setting
from sentinel.detectors.signals import Signal
from sentinel.series.naming import profiles
from tests.each import each

ENTRIES = catalogue.load().values()
RULES = [(e.id, rule) for e in ENTRIES for rule in (*e.confirms, *e.excludes, *e.checks)]
CHECKS = [(e.id, rule) for e in ENTRIES for rule in e.checks]

each_rule = each(RULES)
each_check = each(CHECKS)


class Told:
    """A log that has had its losses, and settings that ask for a cosine."""

    framework = "trl-sft"

    def logs(self, signal, position):
        return signal == "loss" and position >= 3

    def setting(self, name, position, step):  # noqa: ARG002
        known = {"scheduler": "cosine", "peak_learning_rate": 1e-9, "packing": 1.0}
        return {**known, "warmup_steps": 50.0, "total_steps": 80.0}.get(name)


@each_rule
def test_a_rule_looks_at_something_and_has_a_short_reason(cited):
    _, rule = cited
    assert str(rule)
    assert rule.because == rule.because.strip(" .")
    assert len(rule.because) < 120


@each_rule
def test_a_rule_asks_for_what_there_is(cited):
    _, rule = cited
    assert rule.finding is None or rule.finding in all_detectors()
    assert rule.signals.keys() <= {*Signal}
    assert rule.settings.keys() <= {*Setting}
    assert set(rule.framework) <= {UNKNOWN, *profiles()}
    for name, bounds in rule.settings.items():
        choices = bounds.is_ if isinstance(bounds.is_, tuple) else (bounds.is_,)
        texts = {one for one in choices if isinstance(one, str)} - {MISSING}
        assert texts <= {*CHOICES.get(Setting(name), ())}
        assert {bounds.per, bounds.modulo} <= {None, *Setting}
    for bounds in (*rule.settings.values(), *rule.evidence.values()):
        assert (bounds.above, bounds.below, bounds.is_) != (None, None, None)


@each_check
def test_a_check_looks_at_settings_and_the_framework_alone(cited):
    _, rule = cited
    assert rule.settings
    assert (rule.finding, rule.evidence, rule.signals, rule.console) == (None, {}, {}, None)
    assert any(bounds.is_ != MISSING for bounds in rule.settings.values())


@each_rule
def test_evidence_is_shown_by_a_detector_that_cites_the_entry(cited):
    entry, rule = cited
    showing = (
        [rule.finding] if rule.finding else [n for n, d in all_detectors().items() if entry in d.catalogue]
    )
    for name in {*rule.evidence, *(bounds.per for bounds in rule.evidence.values() if bounds.per)} - {"step"}:
        assert any(name in all_detectors()[shows].evidence for shows in showing), name


@pytest.mark.parametrize(
    ("front", "holds"),
    [
        ({"finding": "zero-gradient"}, True),
        ({"finding": "kl-blowup"}, False),
        ({"finding": "zero-gradient", "evidence": {"share": {"above": 0.9}}}, True),
        ({"finding": "zero-gradient", "evidence": {"share": {"below": 0.9}}}, False),
        ({"finding": "kl-blowup", "evidence": {"share": {"above": 0.9}}}, False),
        ({"evidence": {"fall": {"above": 0.1}}}, True),
        ({"evidence": {"fall": {"above": 0.2}}}, False),
        ({"evidence": {"fall": {"below": 0.3, "above": 0.1}}}, True),
        ({"evidence": {"fall": {"is": 0.2}}}, True),
        ({"evidence": {"fall": {"per": "spread", "above": 3}}}, True),
        ({"evidence": {"fall": {"per": "nothing", "above": -9}}}, False),
        ({"evidence": {"fall": {"per": "zero", "above": -9}}}, False),
        ({"evidence": {"unknown": {"below": 9}}}, False),
        ({"evidence": {"text": {"above": 0}}}, False),
        ({"signals": {"loss": "logged"}}, True),
        ({"signals": {"update_ratio": "missing"}}, True),
        ({"signals": {"loss": "missing"}}, False),
        ({"settings": {"peak_learning_rate": {"below": 1e-7}}}, True),
        ({"settings": {"scheduler": {"is": "cosine"}}}, True),
        ({"settings": {"scheduler": {"is": ["linear", "cosine"]}}}, True),
        ({"settings": {"scheduler": {"above": 0}}}, False),
        ({"settings": {"optimizer": {"is": "sgd"}}}, False),
        ({"settings": {"optimizer": {"is": "missing"}}}, True),
        ({"settings": {"scheduler": {"is": "missing"}}}, False),
        ({"settings": {"optimizer": {"is": ["missing", "sgd"]}}}, True),
        ({"settings": {"packing": {"is": True}}}, True),
        ({"settings": {"packing": {"is": False}}}, False),
        ({"settings": {"warmup_steps": {"per": "total_steps", "above": 0.6}}}, True),
        ({"settings": {"warmup_steps": {"modulo": "total_steps", "is": 50}}}, True),
        ({"settings": {"total_steps": {"modulo": "warmup_steps", "is": 30}}}, True),
        ({"settings": {"warmup_steps": {"per": "epochs", "above": 0}}}, False),
        ({"settings": {"scheduler": {"is": "cosine"}, "packing": {"is": False}}}, False),
        ({"settings": {"scheduler": {"is": "cosine"}}, "framework": ["trl-dpo"]}, False),
        ({"framework": ["hf-trainer", "trl-sft"]}, True),
        ({"framework": ["hf-trainer"]}, False),
        ({"console": "all_?reduce"}, True),
        ({"console": "segfault"}, False),
    ],
)
def test_a_rule_holds_where_the_run_is_so(front, holds):
    evidence = {"fall": 0.2, "spread": 0.05, "zero": 0.0, "text": "Error in allreduce", "unknown": None}
    clues = Clues(evidence, {"zero-gradient": {"share": 1.0}}, Told(), position=3, step=3)
    rule = msgspec.convert({"because": "so", **front}, CauseRule)
    assert rule.holds(clues) is holds
    known_nothing = Clues({})
    assert not rule.holds(known_nothing)


@pytest.mark.parametrize(
    ("front", "detector", "speaks"),
    [
        ({"finding": "zero-gradient"}, "loss-plateau", True),
        ({"finding": "zero-gradient"}, "zero-gradient", False),
        ({"finding": "zero-gradient", "evidence": {"share": {"above": 0.5}}}, "zero-gradient", True),
        ({"finding": "zero-gradient", "signals": {"loss": "logged"}}, "zero-gradient", True),
    ],
)
def test_that_a_finding_is_there_says_nothing_of_its_own_causes(front, detector, speaks):
    clues = Clues({}, {"zero-gradient": {"share": 1.0}}, Told(), position=3, detector=detector)
    assert msgspec.convert({"because": "so", **front}, CauseRule).speaks(clues) is speaks


def test_a_signal_counts_from_its_first_point_on():
    rule = CauseRule(because="so", signals={"loss": "logged"})
    assert [rule.holds(Clues({}, {}, Told(), position)) for position in (2, 3)] == [False, True]


def test_a_rule_that_is_none_is_refused():
    with pytest.raises(msgspec.ValidationError, match="unknown field `abov`"):
        msgspec.convert({"because": "so", "evidence": {"fall": {"abov": 1}}}, CauseRule)


@each(ENTRIES, lambda e: e.id)
def test_look_alikes_have_pages(entry):
    assert set(entry.siblings) <= catalogue.load().keys()


def test_the_page_of_an_entry_lists_its_clues():
    from sentinel.report.pages import page

    shown = page("O3")
    assert "## What in a run confirms it" in shown
    assert re.search(r"^- the gradient norm is exactly 0 \(zero-gradient is open\)$", shown, re.MULTILINE)
    assert re.search(r"^- .+ \(gradient above 0\)$", shown, re.MULTILINE)


@each(ENTRIES, lambda e: e.id)
def test_what_a_page_refers_to_has_a_page(entry):
    text = " ".join((entry.fix, entry.check, entry.body))
    named = re.findall(
        r"(?<![\w/`-])(?:A-[a-z][a-z0-9-]*|G-[a-z-]+|G[ADEV](?:-[a-z0-9]+)?|D[PF]\d+|[GLORVX]\d+)(?![\w/-])",
        text,
    )
    assert set(named) <= catalogue.load().keys()
