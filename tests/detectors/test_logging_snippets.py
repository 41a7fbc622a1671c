"""The lines that log a signal log it under a name that sentinel understands."""

import re

import pytest

from sentinel.detectors.discovery import all_detectors
from sentinel.detectors.logging_snippets import LINES, line_for
from sentinel.detectors.signals import Signal
from sentinel.series.naming import Naming, profiles

LOGGED = re.compile(r'(?:log|record)\(\{?"([^"]+)"')
MAPPED = re.compile(r'# \[signals\] ("[^"]+") = "(\w+)"')
CASES = [(signal, family, line) for signal, lines in LINES.items() for family, line in lines.items()]


@pytest.mark.parametrize(("signal", "family", "line"), CASES)
def test_what_a_line_logs_is_the_signal(signal, family, line):
    profile = next((one for name, one in profiles().items() if family and name.startswith(family)), None)
    naming = Naming({tag.strip('"'): name for tag, name in MAPPED.findall(line)})
    for tag in LOGGED.findall(line):
        assert naming.meaning(profile, tag).signal is signal


def test_every_signal_without_which_a_detector_is_blind_has_a_line():
    needed = {s for one in all_detectors().values() for s in one.demand.missing(())}
    assert {Signal(name) for name in needed} == LINES.keys()


def test_a_framework_has_its_own_line_or_the_plain_one():
    assert "LearningRateMonitor" in line_for(Signal.LEARNING_RATE, "lightning")
    assert "get_last_lr" in line_for(Signal.LEARNING_RATE, "custom-rl")
    assert "accelerator" in line_for(Signal.LOSS_SCALE, "trl-sft")
    assert line_for(Signal.WEIGHT_NORM, "") == ""
