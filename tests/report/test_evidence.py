import math

import pytest

from sentinel.detectors.evidence import Unit, measure_of
from sentinel.detectors.signals import Signal
from sentinel.report.evidence import evidence_rows, in_words
from tests.sinks.samples import INCIDENT


def test_each_column_has_its_label_and_unit():
    evidence = {"value": 3.2, "level": 2.9, "limit": 2.0, "clipped": 0.125, "completion_length": 512.0}
    assert evidence_rows(INCIDENT.replace(evidence=evidence)) == [
        ("KL", "3.2 nats per token"),
        ("median of the last 10 points", "2.9 nats per token"),
        ("limit", "2 nats per token"),
        ("largest share of clipped samples", "12.5%"),
        ("completion length", "512 tokens"),
    ]


def test_the_numbers_of_ones_own_rules_have_labels_as_well():
    own = INCIDENT.replace(
        detector="my-rule", evidence={"value": 3.2, "lowest": 1.0, "missing_seconds": 1830.0}
    )
    assert evidence_rows(own) == [
        ("KL", "3.2 nats per token"),
        ("lowest so far", "1 nats per token"),
        ("not logged for", "30 min 30 s"),
    ]


def test_what_is_not_known_is_left_out():
    assert evidence_rows(INCIDENT.replace(evidence={"value": 3.2, "level": None})) == [
        ("KL", "3.2 nats per token")
    ]


def test_a_detector_or_a_signal_that_is_gone_keeps_its_names():
    gone = INCIDENT.replace(detector="gone", signal="gone", evidence={"value": 0.25, "of_peak": 1})
    assert evidence_rows(gone) == [("value", "0.25"), ("of peak", "1")]


@pytest.mark.parametrize(
    ("value", "unit", "words"),
    [
        (0.0002844, Unit.NONE, "0.0002844"),
        (1234567, Unit.NONE, "1,234,567"),
        (-0.0312, Unit.SHARE, "-3.12%"),
        (1200.0, Unit.STEPS, "1,200 steps"),
        (1, Unit.STEPS, "1 step"),
        (1, Unit.POINTS, "1 point"),
        (450, Unit.STEP, "step 450"),
        (0.25, Unit.SECONDS, "0.25 s"),
        (420.0, Unit.SECONDS, "7 min"),
        (37.25, Unit.GIB, "37.25 GiB"),
        ("NaN", Unit.TEXT, "NaN"),
        (math.nan, Unit.COUNT, "nan"),
        (math.inf, Unit.SECONDS, "inf s"),
    ],
)
def test_a_value_reads_with_its_unit(value, unit, words):
    assert in_words(value, unit) == words


def test_every_signal_has_a_label():
    labels = {signal: measure_of(signal).label for signal in Signal}
    assert len(set(labels.values())) == len(labels)
    assert labels[Signal.GRAD_NORM] == "gradient norm"
    assert labels[Signal.MFU] == "MFU"
