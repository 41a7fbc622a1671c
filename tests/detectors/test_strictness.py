"""A factor makes a detector page less, and never more."""

from itertools import pairwise

import polars as pl
import pytest

from sentinel.detectors.api import Detector, Severity
from sentinel.detectors.discovery import all_detectors
from sentinel.detectors.schema import INDEX, SERIES, SEVERITY
from sentinel.detectors.strictness import FACTORS, Strictness
from sentinel.series.windows import frame
from tests.detectors import golden
from tests.detectors.golden import windows

DETECTORS = [d for d in all_detectors().values() if isinstance(d, Detector) and d.stricter]


def test_a_factor_moves_each_threshold_to_its_strict_side():
    strict = Strictness(larger=("growth",), smaller=("left",), full=("alike",))
    moved = strict.of(2.0, {"growth": 10.0, "left": 0.2, "alike": 0.8, "patience": 8})
    assert moved == {"growth": 20.0, "left": 0.1, "alike": 0.9}
    assert (*moved,) == strict.names


@pytest.mark.long
@pytest.mark.parametrize("detector", [d for d in DETECTORS if d.stricter], ids=lambda d: d.name)
def test_a_stricter_detector_pages_nowhere_where_a_milder_one_does_not(detector):
    usual = {name: parameter.default for name, parameter in detector.parameters.items()}
    paged = []
    for factor in (1.0, *FACTORS):
        settings = detector.stricter.of(factor, usual)
        rows = set()
        assert all(isinstance(settings[name], float) for name in settings)
        for number, scenario in enumerate(golden.shipped()[detector.name]):
            shown = frame(detector, windows(detector, scenario.streams, settings=scenario.settings))
            told = detector.run(shown, settings).filter(pl.col(SEVERITY) > Severity.INFO)
            rows |= {(number, *row) for row in told.select(SERIES, INDEX).rows()}
        paged.append(rows)
    assert all(later <= earlier for earlier, later in pairwise(paged))
    assert len(paged[-1]) < len(paged[0])
