"""What every detector keeps to: `sentinel.testing.DetectorConformance`, and a little more for ours."""

import pytest

from sentinel.detectors.api import Detector
from sentinel.detectors.discovery import all_detectors
from sentinel.detectors.schema import SKIPPED
from sentinel.series.windows import frame
from sentinel.testing.detectors import THINNED, DetectorConformance
from tests.detectors import golden
from tests.detectors.golden import path_of, windows
from tests.each import each

ONE_POINT_SUFFICES = {"non-finite-metric", "odd-metric", "zero-eval-metric"}  # finite, and not zero
FIRST_POINT_TELLS = {"init-loss-mismatch"}  # the KL of a policy to itself is 0


def suite_of(detector):
    members = {
        "detector": detector,
        "golden": path_of(detector),
        "_scenarios": golden.shipped()[detector.name],
    }
    return type(detector.name, (DetectorConformance,), members)()


SUITES = [suite_of(d) for d in all_detectors().values() if isinstance(d, Detector)]
SCENARIOS = [(suite, scenario) for suite in SUITES for scenario in suite.scenarios()]


def name_of(suite):
    return suite.detector.name


each_detector = pytest.mark.parametrize("suite", SUITES, ids=name_of)
each_of_all = each(SUITES, name_of)
each_scenario = pytest.mark.parametrize(
    ("suite", "scenario"), SCENARIOS, ids=[str(scenario) for _, scenario in SCENARIOS]
)


@pytest.mark.slow
@each_detector
def test_says_what_its_goldens_expect(suite):
    suite.test_says_what_its_golden_expects()


@pytest.mark.slow
@each_of_all
def test_has_a_golden_that_fires_and_one_that_stays_quiet(suite):
    suite.test_fires_in_one_scenario_and_stays_quiet_in_another()


@pytest.mark.slow
@each_detector
def test_a_variant_that_only_informs_is_found_alike_and_pages_nobody(suite):
    suite.test_a_variant_that_only_informs_is_found_and_pages_nobody()


@pytest.mark.slow
@each_of_all
def test_every_variant_is_seen_in_a_golden_with_each_of_its_severities(suite):
    suite.test_every_variant_is_seen_with_each_of_its_severities()


@pytest.mark.slow
@each_of_all
def test_a_rule_asks_for_no_severity_that_it_does_not_declare(suite):
    suite.test_asks_for_no_severity_that_it_does_not_declare()


def test_every_golden_has_a_detector():
    assert {p.name for p in golden.FOLDER.glob("*.md")} <= {suite.golden.name for suite in SUITES}


@each_of_all
def test_what_it_declares_is_whole(suite):
    suite.test_is_found_under_its_name()
    suite.test_page_has_the_headings()
    suite.test_cites_catalogue_entries_that_exist()
    suite.test_thresholds_have_defaults_and_meanings()
    suite.test_a_finding_holds_and_clears_in_at_least_one_row()


@each_of_all
def test_every_variant_cites_an_entry(suite):
    assert all(variant.catalogue for variant in suite.detector.variants.values())


@pytest.mark.long
@each_of_all
def test_evidence_and_messages(suite):
    suite.test_evidence_is_labelled_and_has_a_unit()
    suite.test_messages_read_only_what_there_is()


@pytest.mark.long
@each_of_all
def test_verdicts_keep_to_the_schema(suite):
    suite.test_verdicts_keep_to_the_schema()


@pytest.mark.slow
@each_scenario
def test_one_pass_equals_what_pieces_give(suite, scenario):
    suite.assert_same_in_pieces(scenario)


@pytest.mark.slow
@each_detector
def test_runs_do_not_leak_into_each_other(suite):
    suite.test_runs_do_not_leak_into_each_other()


@pytest.mark.long
@each_of_all
def test_a_window_is_judged_for_itself(suite):
    suite.test_leaves_its_input_alone()
    suite.test_an_empty_window_has_no_verdicts()
    if suite.detector.name not in FIRST_POINT_TELLS:
        suite.test_one_point_is_no_finding()
    suite.test_every_early_row_has_a_verdict_or_a_reason_for_none()


@pytest.mark.long
@each_of_all
def test_a_detector_that_cannot_judge_a_single_point_says_so(suite):
    detector = suite.detector
    looked = detector.detect(frame(detector, windows(detector, suite.streams_of("0.5"))))
    assert looked[SKIPPED].is_null().any() == (detector.name in ONE_POINT_SUFFICES | FIRST_POINT_TELLS)


@pytest.mark.slow
@each_detector
@pytest.mark.parametrize("every", THINNED, ids=["never", "seldom"])
def test_survives_gaps_in_what_it_uses(suite, every):
    suite.assert_survives_gaps(every)


@pytest.mark.slow
@each_detector
def test_survives_extreme_values(suite):
    suite.test_survives_extreme_values()
