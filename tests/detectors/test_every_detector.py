"""What every detector keeps to, whoever wrote it."""

import math
import string
from functools import cache

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from polars.testing import assert_frame_equal

from detectors.api import Detector, Severity
from detectors.discovery import all_detectors
from detectors.schema import COARSE, FINDINGS, INDEX, SERIES, SEVERITY, SIGNAL, STEP, VARIANT, WINDOW
from sentinel.frames.windows import frame
from tests.detectors.golden import FOLDER, Scenario, Stream, judge, message, path_of, rendered, scenarios, windows

HEADINGS = ["What it catches", "Why it matters", "What to do", "When it is wrong", "Source"]

DETECTORS = list(all_detectors().values())
SCENARIOS = [s for d in DETECTORS for s in scenarios(d)]

each_detector = pytest.mark.parametrize("detector", DETECTORS, ids=lambda d: d.name)
each_scenario = pytest.mark.parametrize("scenario", SCENARIOS, ids=str)


@cache
def verdicts(scenario: Scenario) -> pl.DataFrame:
    return judge(scenario.detector, windows(scenario.detector, scenario.streams))


def same(one: pl.DataFrame, other: pl.DataFrame) -> None:
    assert_frame_equal(one, other, rel_tol=1e-6, abs_tol=1e-9)


def points_in(scenario: Scenario) -> int:
    return sum(len(s.step) for s in scenario.streams)


# Goldens


@each_scenario
def test_says_what_its_golden_expects(scenario):
    assert rendered(scenario) == scenario.expected


@each_detector
def test_has_a_golden_that_fires_and_one_that_stays_quiet(detector):
    worst = [verdicts(s)[SEVERITY].max() for s in scenarios(detector)]
    assert any(w is not None and w >= Severity.WARNING for w in worst), f"nothing fires in {path_of(detector)}"
    assert Severity.CLEAN in worst, f"nothing is judged and stays quiet in {path_of(detector)}"


@each_detector
def test_every_variant_is_seen_in_a_golden(detector):
    seen = set().union(*(verdicts(s)[VARIANT].drop_nulls() for s in scenarios(detector)))
    assert seen == set(detector.variants)


def test_every_golden_has_a_detector():
    assert {p.name for p in FOLDER.glob("*.md")} <= {path_of(d).name for d in DETECTORS}


# Declaration


@each_detector
def test_page_has_the_headings(detector):
    headings = [line.removeprefix("## ") for line in detector.page.splitlines() if line.startswith("## ")]
    assert headings == HEADINGS
    parts = detector.page.split("\n## ")
    assert all(len(p.strip().splitlines()) > 1 for p in parts[1:]), "a heading without text"


@each_detector
def test_cites_the_catalogue(detector):
    assert detector.variants
    assert all(v.catalogue for v in detector.variants.values())


@each_detector
def test_thresholds_have_defaults_and_meanings(detector):
    for name, parameter in detector.parameters.items():
        assert isinstance(parameter.default, parameter.type), name
        assert parameter.meaning.strip(), name


@each_detector
def test_messages_read_only_what_there_is(detector):
    row = judge(detector, windows(detector, scenarios(detector)[0].streams))
    known = set(row.columns) | set(detector.parameters)
    for variant in detector.variants.values():
        fields = {field for _, field, _, _ in string.Formatter().parse(variant.message) if field is not None}
        assert fields <= known


# Behaviour


@each_scenario
def test_verdicts_keep_to_the_schema(scenario):
    found = verdicts(scenario)
    assert {n: found.schema[n] for n in FINDINGS if n != SERIES} == {n: t for n, t in FINDINGS.items() if n != SERIES}
    fired = found.filter(pl.col(SEVERITY) > 0)
    assert set(fired[VARIANT]) <= set(scenario.detector.variants)
    assert found.filter(pl.col(SEVERITY) == 0)[VARIANT].null_count() == len(found) - len(fired)
    assert found.select(SIGNAL, INDEX).is_unique().all()
    assert found[SEVERITY].is_between(Severity.CLEAN, Severity.CRITICAL).all()
    for row in fired.iter_rows(named=True):
        assert "None" not in message(scenario.detector, row)


@each_scenario
def test_one_pass_equals_point_by_point(scenario):
    cuts = range(1, points_in(scenario))
    same(verdicts(scenario), judge(scenario.detector, windows(scenario.detector, scenario.streams, cuts)))


@each_scenario
@settings(max_examples=5, deadline=None)
@given(data=st.data())
def test_chunking_changes_nothing(scenario, data):
    cuts = data.draw(st.sets(st.integers(1, points_in(scenario)), max_size=12))
    same(verdicts(scenario), judge(scenario.detector, windows(scenario.detector, scenario.streams, sorted(cuts))))


@each_detector
def test_runs_do_not_leak_into_each_other(detector):
    shown = [windows(detector, s.streams) for s in scenarios(detector)]
    together = judge(detector, [w for one in shown for w in one])
    apart = pl.concat([judge(detector, one) for one in shown])
    same(together.sort(pl.all()), apart.sort(pl.all()))


@each_detector
def test_leaves_its_input_alone(detector):
    window = frame(detector, windows(detector, scenarios(detector)[0].streams))
    before = window.clone()
    detector.run(window)
    assert_frame_equal(window, before)


@each_detector
def test_an_empty_window_has_no_verdicts(detector):
    context = dict.fromkeys((*detector.needs, *detector.uses), pl.Float64)
    coarse = COARSE if detector.history.coarse else {}
    assert detector.run(pl.DataFrame(schema={**WINDOW, **context, **coarse})).is_empty()


@each_detector
def test_one_point_is_not_enough(detector):
    assert_quiet(detector, streams_of(detector, "0.5"))


@each_scenario
def test_survives_gaps_in_what_it_uses(scenario):
    full = [s for s in scenario.streams if s.signal in scenario.detector.judges]
    thinned = [Stream(s.signal, s.step[::7], s.value[::7]) for s in scenario.streams if s.signal in scenario.detector.uses]
    assert_valid(scenario.detector, judge(scenario.detector, windows(scenario.detector, full)))
    kept = {s.signal: s for s in [*scenario.streams, *thinned]}
    assert_valid(scenario.detector, judge(scenario.detector, windows(scenario.detector, list(kept.values()))))


@each_detector
@pytest.mark.parametrize("text", ["0", "1e300", "-1e300", "(0 1e300)", "(-1e300 1e300)", "-1", "1e-300", "(1 nan)"])
def test_survives_extreme_values(detector, text):
    assert_valid(detector, judge(detector, windows(detector, streams_of(detector, f"{text}x300".replace(" nan)", " nan)")))))


def streams_of(detector: Detector, text: str) -> list[Stream]:
    signals = dict.fromkeys((*detector.judges, *detector.needs, *detector.uses))
    return [Stream.parse(s.value, text) for s in signals]


def assert_quiet(detector: Detector, streams: list[Stream]) -> None:
    assert not judge(detector, windows(detector, streams))[SEVERITY].any()


def assert_valid(detector: Detector, found: pl.DataFrame) -> None:
    assert found[SEVERITY].is_between(Severity.CLEAN, Severity.CRITICAL).all()
    for row in found.filter(pl.col(SEVERITY) > 0).iter_rows(named=True):
        assert message(detector, row)
        assert math.isfinite(row[STEP])
