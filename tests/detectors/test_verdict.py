"""The end that rules share."""

import polars as pl
import pytest

from sentinel.detectors.api import CRITICAL, INFO, WARNING, History, Variant, detector
from sentinel.detectors.schema import INDEX, NEW, ONSET, SERIES, SEVERITY, SKIPPED, STEP, VALUE, VARIANT
from sentinel.detectors.signals import Signal
from sentinel.detectors.skip_reason import SkipReason
from sentinel.detectors.verdict import verdicts

VALUES = [0.0, 1.0, 2.0, 3.0, None]
ABOVE_1 = pl.col(VALUE) > 1
ABOVE_2 = pl.col(VALUE) > 2


def measured(values=tuple(VALUES)):
    rows = range(len(values))
    frame = {SERIES: [0] * len(values), INDEX: rows, STEP: [10 * r for r in rows], NEW: True, VALUE: values}
    return pl.LazyFrame(frame, schema_overrides={VALUE: pl.Float64}).with_columns(level=pl.col(VALUE) * 2)


def test_the_first_variant_that_holds_counts_and_null_does_not_hold():
    found = verdicts(measured(), found={"far": ABOVE_2, "near": ABOVE_1}).collect()
    assert found[VARIANT].to_list() == [None, None, "near", "far", None]
    assert found[SEVERITY].to_list() == [0, 0, None, None, 0], "each has its usual one"


@pytest.mark.parametrize(
    ("declared", "expected"),
    [
        ((WARNING,), [0, 0, WARNING, WARNING, 0]),
        ((INFO, CRITICAL), [0, 0, INFO, CRITICAL, 0]),
        ((INFO, CRITICAL, WARNING), [0, 0, WARNING, CRITICAL, 0]),
        ((CRITICAL, INFO), [0, 0, CRITICAL, CRITICAL, 0]),
    ],
)
def test_a_finding_has_the_worst_declared_severity_that_holds_or_the_usual_one(declared, expected):
    @detector(judges=(Signal.LOSS,), history=History(), variants={"seen": Variant("", (), declared)})
    def rule(points):
        severities = {WARNING: pl.col(VALUE) < 10, CRITICAL: ABOVE_2}
        return verdicts(points, found={"seen": ABOVE_1}, severities=severities)

    assert rule.run(measured().collect())[SEVERITY].to_list() == expected


def test_a_row_that_cannot_be_judged_gets_no_verdict_and_the_first_reason():
    preconditions = {SkipReason.FEW_POINTS: pl.col(INDEX) > 0, SkipReason.RANGE: pl.col(VALUE) >= 2}
    found = verdicts(measured(), found={"seen": ABOVE_2}, judged=preconditions).collect()
    assert found[VARIANT].to_list() == [None, None, None, "seen", None]
    assert found[SEVERITY].to_list() == [None, None, 0, None, None]
    reasons = [SkipReason.FEW_POINTS, SkipReason.RANGE, None, None, SkipReason.RANGE]
    assert found[SKIPPED].to_list() == reasons, "null meets no precondition"


def test_a_row_between_the_thresholds_is_neither_found_nor_clean():
    found = verdicts(measured(), found={"seen": ABOVE_2}, lasts=ABOVE_1).collect()
    assert found[VARIANT].to_list() == [None, None, None, "seen", None]
    assert found[SEVERITY].to_list() == [0, 0, None, None, 0]
    assert found[SKIPPED].to_list() == [None] * 5, "it was judged"


def test_only_a_found_row_has_an_onset():
    found = verdicts(measured(), found={"seen": ABOVE_2}, onset=pl.col(STEP) - 5).collect()
    assert found[ONSET].to_list() == [None, None, None, 25, None]


def test_a_frame_without_rows_has_no_verdicts():
    assert verdicts(measured(()), found={"seen": ABOVE_2}, lasts=ABOVE_1).collect().is_empty()
