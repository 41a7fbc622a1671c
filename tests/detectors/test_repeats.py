"""A loss that repeats itself is one rule's case: above its best of `loss-plateau`, else `repeated-loss`."""

import polars as pl
import pytest

from sentinel.detectors.discovery import all_detectors
from sentinel.detectors.schema import SEVERITY, SIGNAL, STEP
from sentinel.detectors.signals import Signal
from tests.detectors import golden
from tests.detectors.golden import Stream, judge, windows

pytestmark = pytest.mark.slow

PLATEAU, REPEATED = (all_detectors()[name] for name in ("loss-plateau", "repeated-loss"))


def told(rule, streams, settings=None):
    """The steps at which the rule finds something in the training loss."""
    found = judge(rule, windows(rule, streams, settings=settings))
    of_loss = found.filter(pl.col(SEVERITY) > 0, pl.col(SIGNAL) == Signal.LOSS)
    return {*of_loss[STEP]}


SCENARIOS = [
    scenario
    for rule in (PLATEAU, REPEATED)
    for scenario in golden.shipped()[rule.name]
    if any(stream.signal == Signal.LOSS for stream in scenario.streams)
]


@pytest.mark.parametrize("scenario", SCENARIOS, ids=str)
def test_no_golden_of_one_rule_is_told_by_both(scenario):
    of_one, of_other = (told(rule, scenario.streams, scenario.settings) for rule in (PLATEAU, REPEATED))
    assert not of_one & of_other


@pytest.mark.parametrize("learned", ["2.0*0.98~2%x60", "2.0~2%x60", "2.0*0.99~2%x200"])
@pytest.mark.parametrize("rest", ["0.1234567", "0.5234567", "1.2345678", "3.4567891"])
def test_a_loss_that_stands_still_is_told_by_one_rule(learned, rest):
    streams = [Stream.parse("loss", f"{learned} {rest}x60")]
    of_plateau = told(PLATEAU, streams)
    of_repeated = told(REPEATED, streams)
    assert of_plateau or of_repeated
    assert not of_plateau & of_repeated
