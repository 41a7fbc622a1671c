"""What the forest says of the outcomes among new rows."""

import numpy as np

from sentinel.detection.second_opinions import opinions
from sentinel.detectors.api import Detector
from sentinel.detectors.discovery import all_detectors
from sentinel.detectors.signals import Signal
from sentinel.series.plan import KnownOfStream, Plans
from sentinel.series.stream import SeriesRows
from tests.detectors.golden import Stream, windows


def test_an_interim_at_which_the_run_ends_is_told_as_both():
    """A watch that reads row by row hears of them apart."""
    detector = all_detectors()["generalization-gap"]
    assert isinstance(detector, Detector)
    losses = np.linspace(2.0, 1.0, 20)
    judged = windows(detector, [Stream(Signal.EVAL_LOSS, np.arange(20), losses)])
    rows = [
        SeriesRows("run", "s", spec, 1, "eval_loss", window, KnownOfStream(None, {}, Plans()))
        for spec, window in judged
    ]
    said = [verdict for _, (verdict,) in opinions(rows, lambda *_: None)]
    points = {(verdict.index + 1, verdict.final) for verdict in said}
    assert points == {(count, False) for count in (5, 6, 7, 8, 10, 12, 14, 16, 20)} | {(20, True)}
    assert all(0 <= verdict.opinion() <= 1 for verdict in said)
