"""The opinion of cards beside a rule: where it prevails, and where it is silent."""

import numpy as np

from sentinel.detectors.api import Detector
from sentinel.detectors.discovery import all_detectors
from sentinel.detectors.schema import VARIANT
from sentinel.detectors.signals import Signal
from tests.detectors.golden import Stream, judge, windows

NOISE = np.random.default_rng(1).normal(0, 8, 150)
FLAT = np.full(150, -200.0) + NOISE


def variants(name: str, signal: Signal, *logs: np.ndarray, first: int = 0) -> set[str]:
    """The variants that a detector finds in one signal, of which each log is an attempt."""
    detector = all_detectors()[name]
    assert isinstance(detector, Detector)
    streams = [
        Stream(signal, np.arange(first, first + len(values)), values, attempt=number)
        for number, values in enumerate(logs, 1)
    ]
    verdicts = judge(detector, windows(detector, streams))
    return set(verdicts[VARIANT].drop_nulls().to_list())


def test_a_card_speaks_under_the_name_of_the_detector_that_reads_it():
    assert variants("reward-stagnation", Signal.REWARD, FLAT) == {"reward-never-left-its-start"}


def test_the_first_row_of_a_resume_is_no_start():
    assert variants("reward-stagnation", Signal.REWARD, FLAT, first=50_000) == set()


def test_a_card_yields_to_another_one():
    fell = np.r_[np.full(40, 0.0), np.linspace(0, -200, 60), np.full(50, -200.0)] + NOISE
    assert variants("reward-collapse", Signal.REWARD, fell)
    assert variants("reward-stagnation", Signal.REWARD, fell) == set()


def test_a_short_tail_after_a_resume_is_no_course():
    rising = np.array([0.488, 0.496, 0.514, 0.521, 0.512, 0.525, 0.53, 0.526, 0.525, 0.513])
    assert variants("generalization-gap", Signal.EVAL_LOSS, rising) == {"memorises"}
    assert variants("generalization-gap", Signal.EVAL_LOSS, rising, first=40) == set()
