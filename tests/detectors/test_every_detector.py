"""What every detector keeps to, whoever wrote it."""

import random
import string
from collections.abc import Sequence
from dataclasses import replace
from itertools import accumulate, takewhile

import polars as pl
import pytest
from polars.testing import assert_frame_equal

from sentinel import catalogue
from sentinel.detectors.api import Detector, Severity
from sentinel.detectors.discovery import all_detectors
from sentinel.detectors.evidence import Unit
from sentinel.detectors.schema import (
    FEW,
    FINDINGS,
    INDEX,
    SERIES,
    SEVERITY,
    SIGNAL,
    SKIPPED,
    VALUE,
    VARIANT,
)
from sentinel.detectors.severity import AS
from sentinel.detectors.skip_reason import SkipReason
from sentinel.incidents.incident import LASTED
from sentinel.series.windows import Judged, frame
from tests.detectors import golden
from tests.detectors.golden import Scenario, Stream, judge, message, path_of, windows
from tests.each import each

HEADINGS = ["What it catches", "Why it matters", "What to do", "When it is wrong", "Source"]

ONE_POINT_SUFFICES = {"non-finite-metric", "odd-metric", "zero-eval-metric"}  # finite, and not zero

PIECES = (1, 1, 1, 1, 2, 7)
"""How many points a poll brings."""

DETECTORS = [d for d in all_detectors().values() if isinstance(d, Detector)]
SCENARIOS = [s for d in DETECTORS for s in golden.shipped()[d.name]]

each_detector = pytest.mark.parametrize("detector", DETECTORS, ids=lambda d: d.name)
each_of_all = each(DETECTORS, lambda d: d.name)
each_scenario = pytest.mark.parametrize("scenario", SCENARIOS, ids=str)


# Goldens


@pytest.mark.slow
@each_detector
def test_says_what_its_goldens_expect(detector):
    for scenario in golden.shipped()[detector.name]:
        assert golden.rendered(scenario) == scenario.expected, str(scenario)


@pytest.mark.slow
@each_of_all
def test_has_a_golden_that_fires_and_one_that_stays_quiet(detector):
    page = path_of(detector)
    worst = [s.verdicts[SEVERITY].max() for s in golden.shipped()[detector.name]]
    assert detector.severities[0] in worst, f"nothing fires in {page}"
    assert Severity.CLEAN in worst, f"nothing is judged and stays quiet in {page}"


@pytest.mark.slow
@each_detector
def test_a_variant_that_only_informs_is_found_alike_and_pages_nobody(detector):
    quiet = replace(detector, informs=frozenset(detector.variants))
    for scenario in golden.shipped()[detector.name]:
        told = replace(scenario, detector=quiet).verdicts
        assert_frame_equal(told.drop(SEVERITY), scenario.verdicts.drop(SEVERITY))
        assert (told[SEVERITY].max() or Severity.CLEAN) <= Severity.INFO


@pytest.mark.slow
@each_of_all
def test_every_variant_is_seen_in_a_golden_with_each_of_its_severities(detector):
    found = pl.concat(s.verdicts.select(VARIANT, SEVERITY) for s in golden.shipped()[detector.name])
    declared = {(name, int(s)) for name, variant in detector.variants.items() for s in variant.severities}
    assert set(found.drop_nulls(VARIANT).unique().rows()) == declared


@pytest.mark.slow
@each_of_all
def test_a_rule_asks_for_no_severity_that_it_does_not_declare(detector):
    shown = frame(detector, windows(detector, golden.shipped()[detector.name][0].streams))
    columns = detector.rule(shown.lazy()).collect_schema().names()
    assert {severity for severity, column in AS.items() if column in columns} <= {*detector.severities}


def test_every_golden_has_a_detector():
    assert {p.name for p in golden.FOLDER.glob("*.md")} <= {path_of(d).name for d in DETECTORS}


# Declaration


@each_of_all
def test_page_has_the_headings(detector):
    headings = [line.removeprefix("## ") for line in detector.doc.splitlines() if line.startswith("## ")]
    assert headings == HEADINGS
    parts = detector.doc.split("\n## ")
    assert all(len(p.strip().splitlines()) > 1 for p in parts[1:]), "a heading without text"


@each_of_all
def test_cites_catalogue_entries_that_exist(detector):
    assert detector.variants
    assert all(v.catalogue for v in detector.variants.values())
    assert set(detector.catalogue) <= catalogue.load().keys()


@each_of_all
def test_thresholds_have_defaults_and_meanings(detector):
    for name, parameter in detector.parameters.items():
        assert isinstance(parameter.default, parameter.type), name
        assert parameter.meaning.strip(), name


@each_of_all
def test_a_finding_holds_and_clears_in_at_least_one_row(detector):
    assert min(detector.hold, detector.clear) >= 1
    assert detector.cause not in detector.inhibits, "findings of one class do not explain each other"


@pytest.mark.long
@each_of_all
def test_evidence_is_labelled_and_has_a_unit(detector):
    found = golden.shipped()[detector.name][0].verdicts
    assert set(found.columns) - {*FINDINGS, SIGNAL} == {VALUE, *detector.evidence}
    labels = [measure.label for measure in detector.evidence.values()]
    assert len(set(labels)) == len(labels), "two columns read alike"
    for name, measure in detector.evidence.items():
        assert measure.label.strip(), name
        assert (measure.unit is Unit.TEXT) == (found.schema[name] == pl.String), name


@pytest.mark.long
@each_of_all
def test_messages_read_only_what_there_is(detector):
    row = judge(detector, windows(detector, golden.shipped()[detector.name][0].streams))
    known = {*row.columns, *detector.parameters, LASTED, golden.TAG}
    for variant in detector.variants.values():
        fields = {field for _, field, _, _ in string.Formatter().parse(variant.message) if field is not None}
        assert fields <= known


# Behaviour


@pytest.mark.long
@each_of_all
def test_verdicts_keep_to_the_schema(detector):
    for scenario in golden.shipped()[detector.name]:
        found = scenario.verdicts
        assert {n: found.schema.get(n, t) for n, t in FINDINGS.items()} == FINDINGS, str(scenario)
        judged = found.select(SIGNAL, INDEX)
        again = sum(len(one.step) for one in scenario.streams if one.attempt > 1)
        again += len(scenario.streams) if detector.at_end else 0
        assert judged.height - judged.n_unique() <= again, str(scenario)
        assert_valid(detector, found)


@pytest.mark.slow
@each_scenario
def test_one_pass_equals_what_pieces_give(scenario):
    """Most pieces are single rows, so that every detector judges hundreds of rows one by one."""
    points = points_in(scenario)
    sizes = random.Random(scenario.title)
    ends = accumulate(sizes.choice(PIECES) for _ in range(points))
    same(scenario.verdicts, cut(scenario, [*takewhile(lambda end: end < points, ends)]))


@pytest.mark.slow
@each_detector
def test_runs_do_not_leak_into_each_other(detector):
    apart = pl.concat([s.verdicts for s in golden.shipped()[detector.name]])
    same(judge(detector, all_shown(detector)).sort(pl.all()), apart.sort(pl.all()))


@pytest.mark.long
@each_of_all
def test_leaves_its_input_alone(detector):
    window = frame(detector, windows(detector, golden.shipped()[detector.name][0].streams))
    before = window.clone()
    detector.run(window)
    assert_frame_equal(window, before)


@pytest.mark.long
@each_of_all
def test_an_empty_window_has_no_verdicts(detector):
    window = frame(detector, windows(detector, golden.shipped()[detector.name][0].streams))
    assert detector.run(window.clear()).is_empty()


@pytest.mark.long
@each_of_all
def test_one_point_is_no_finding(detector):
    found = judge(detector, windows(detector, same_everywhere(detector, "0.5")))
    assert found.filter(pl.col(SEVERITY) > 0).is_empty()


@pytest.mark.long
@each_of_all
def test_every_early_row_has_a_verdict_or_a_reason_for_none(detector):
    shown = frame(detector, all_shown(detector))
    looked = detector.detect(shown).filter(pl.col(INDEX) < FEW)
    due = shown.filter(detector.due, pl.col(INDEX) < FEW).select(SERIES, INDEX).sort(SERIES, INDEX)
    assert looked.select(SERIES, INDEX).rows() == due.rows()
    assert looked[SKIPPED].drop_nulls().is_in([*SkipReason]).all()
    both = pl.col(SKIPPED).is_not_null() & pl.col(SEVERITY).is_not_null()
    assert looked.filter(both).is_empty()


@pytest.mark.long
@each_of_all
def test_a_detector_that_cannot_judge_a_single_point_says_so(detector):
    looked = detector.detect(frame(detector, windows(detector, same_everywhere(detector, "0.5"))))
    assert looked[SKIPPED].is_null().any() == (detector.name in ONE_POINT_SUFFICES)


@pytest.mark.slow
@each_detector
@pytest.mark.parametrize("every", [0, 17], ids=["never", "seldom"])
def test_survives_gaps_in_what_it_uses(detector, every):
    required = {*detector.judges, *detector.needs}
    shown = []
    for scenario in golden.shipped()[detector.name]:
        kept = [one if one.signal in required else thinned(one, every) for one in scenario.streams]
        shown += windows(detector, [one for one in kept if len(one.step)])
    assert_valid(detector, judge(detector, shown))


@pytest.mark.slow
@each_detector
def test_survives_extreme_values(detector):
    extreme = ["0x300", "-1x300", "1e300x300", "(-1e300 1e300)x150", "1e-300x300", "(0.5 nan)x200"]
    shown = [w for text in extreme for w in windows(detector, same_everywhere(detector, text))]
    assert_valid(detector, judge(detector, shown))


# Helpers


def all_shown(detector: Detector) -> list[Judged]:
    """The windows of all its scenarios, which may stand in one frame."""
    scenarios = golden.shipped()[detector.name]
    return [w for s in scenarios for w in windows(detector, s.streams, settings=s.settings)]


def cut(scenario: Scenario, cuts: Sequence[int]) -> pl.DataFrame:
    return judge(scenario.detector, windows(scenario.detector, scenario.streams, cuts, scenario.settings))


def thinned(stream: Stream, every: int) -> Stream:
    """Only some points, or none."""
    kept = slice(None, None, every) if every else slice(0)
    return replace(stream, step=stream.step[kept], value=stream.value[kept])


def points_in(scenario: Scenario) -> int:
    return sum(len(s.step) for s in scenario.streams)


def same_everywhere(detector: Detector, text: str) -> list[Stream]:
    used = (use.signal for use in detector.uses)
    signals = dict.fromkeys((*detector.judges, *detector.needs, *used))
    return [Stream.parse(s.value, text) for s in signals]


def same(one: pl.DataFrame, other: pl.DataFrame) -> None:
    assert_frame_equal(one, other, rel_tol=1e-6, abs_tol=1e-9)


def assert_valid(detector: Detector, found: pl.DataFrame) -> None:
    """Severities that exist, a variant exactly where something was found, and its sentence can be said."""
    assert found[SEVERITY].is_between(Severity.CLEAN, Severity.CRITICAL).all()
    fired = pl.col(SEVERITY) > Severity.CLEAN
    assert found.select((pl.col(VARIANT).is_not_null() == fired).all()).item()
    for row in found.filter(fired).iter_rows(named=True):
        assert message(detector, row)
