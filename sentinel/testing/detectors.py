"""What every detector keeps to, whoever wrote it, as tests for pytest."""

import random
import string
from collections.abc import Iterator, Sequence
from itertools import accumulate, takewhile
from pathlib import Path
from typing import ClassVar

import polars as pl
from msgspec.structs import replace
from polars.testing import assert_frame_equal

from sentinel import catalogue
from sentinel.detectors.api import Cause, Detector, Severity
from sentinel.detectors.discovery import all_detectors
from sentinel.detectors.evidence import Unit
from sentinel.detectors.schema import (
    EARLY_ROWS,
    FINDINGS,
    INDEX,
    SERIES,
    SEVERITY,
    SIGNAL,
    SKIPPED,
    VALUE,
    VARIANT,
)
from sentinel.detectors.severity import SEVERITY_COLUMNS
from sentinel.detectors.skip_reason import SkipReason
from sentinel.incidents.incident import LASTED
from sentinel.series.windows import Judged, frame
from sentinel.testing import golden
from sentinel.testing.golden import Scenario, Stream, judge, message, windows

HEADINGS = ["What it catches", "Why it matters", "What to do", "When it is wrong", "Source"]
"""The parts of a detector's page, which is the docstring of its module."""

POINTS_PER_POLL = (1, 1, 1, 1, 2, 7)
"""How many points a poll brings: most are single, so that a detector judges hundreds of rows one by one."""

EXTREME_STREAMS = ("0x300", "-1x300", "1e300x300", "(-1e300 1e300)x150", "1e-300x300", "(0.5 nan)x200")
"""Values of one stream each, which no detector may fail on; `sentinel.testing.golden` says what they mean."""

THINNED = (0, 17)
"""Of a signal that is only used, each so many-th point is left; 0: none."""

RELATIVE_TOLERANCE = 1e-6
ABSOLUTE_TOLERANCE = 1e-9
"""What may lie between numbers that a run gives when it is read at once, and when it is read in pieces."""


class DetectorConformance:
    """The tests of one detector. A subclass names it and the page of its scenarios.

    The page holds at least one stream that stays quiet and, for each variant and each of its severities, one
    that fires; `sentinel.testing.golden` describes it.
    """

    detector: ClassVar[Detector]
    golden: ClassVar[Path]

    @classmethod
    def scenarios(cls) -> Sequence[Scenario]:
        """Return the scenarios of the page, which are read and judged once."""
        if "_scenarios" not in vars(cls):
            cls._scenarios = golden.scenarios(cls.detector, cls.golden)
        return cls._scenarios

    _scenarios: ClassVar[Sequence[Scenario]]

    # Declaration

    def test_is_found_under_its_name(self) -> None:
        assert all_detectors().get(self.detector.name) is self.detector, "no entry point names it"

    def test_page_has_the_headings(self) -> None:
        lines = self.detector.doc.splitlines()
        assert [line.removeprefix("## ") for line in lines if line.startswith("## ")] == HEADINGS
        parts = self.detector.doc.split("\n## ")
        assert all(len(part.strip().splitlines()) > 1 for part in parts[1:]), "a heading without text"

    def test_cites_catalogue_entries_that_exist(self) -> None:
        assert self.detector.variants
        assert set(self.detector.catalogue) <= catalogue.load().keys()

    def test_thresholds_have_defaults_and_meanings(self) -> None:
        for name, parameter in self.detector.parameters.items():
            assert isinstance(parameter.default, parameter.type), name
            assert parameter.meaning.strip(), name

    def test_a_finding_holds_and_clears_in_at_least_one_row(self) -> None:
        assert min(self.detector.hold, self.detector.clear) >= 1
        of_policy = self.detector.cause is Cause.POLICY
        assert of_policy or self.detector.cause not in self.detector.inhibits, (
            "findings of a class explain no others of it, except those of a policy, of which the first speaks"
        )

    def test_asks_for_no_severity_that_it_does_not_declare(self) -> None:
        rows = frame(self.detector, windows(self.detector, self.scenarios()[0].streams))
        columns = self.detector.rule(rows.lazy()).collect_schema().names()
        requested = {severity for severity, column in SEVERITY_COLUMNS.items() if column in columns}
        assert requested <= {*self.detector.severities}

    def test_evidence_is_labelled_and_has_a_unit(self) -> None:
        verdicts = self.scenarios()[0].verdicts
        assert set(verdicts.columns) - {*FINDINGS, SIGNAL} == {VALUE, *self.detector.evidence}
        labels = [measure.label for measure in self.detector.evidence.values()]
        assert len(set(labels)) == len(labels), "two columns read alike"
        for name, measure in self.detector.evidence.items():
            assert measure.label.strip(), name
            assert (measure.unit is Unit.TEXT) == (verdicts.schema[name] == pl.String), name

    def test_messages_read_only_what_there_is(self) -> None:
        row = judge(self.detector, windows(self.detector, self.scenarios()[0].streams))
        names = {*row.columns, *self.detector.parameters, LASTED, golden.TAG}
        for variant in self.detector.variants.values():
            fields = (field for _, field, _, _ in string.Formatter().parse(variant.message))
            assert {field for field in fields if field is not None} <= names

    # What its golden shows

    def test_says_what_its_golden_expects(self) -> None:
        for scenario in self.scenarios():
            assert golden.rendered(scenario) == scenario.expected, str(scenario)

    def test_fires_in_one_scenario_and_stays_quiet_in_another(self) -> None:
        worst = [scenario.verdicts[SEVERITY].max() for scenario in self.scenarios()]
        assert self.detector.severities[0] in worst, "nothing fires"
        assert Severity.CLEAN in worst, "nothing is judged and stays quiet"

    def test_every_variant_is_seen_with_each_of_its_severities(self) -> None:
        rows = pl.concat(scenario.verdicts.select(VARIANT, SEVERITY) for scenario in self.scenarios())
        variants = self.detector.variants.items()
        declared = {(name, int(severity)) for name, variant in variants for severity in variant.severities}
        assert set(rows.drop_nulls(VARIANT).unique().rows()) == declared

    def test_a_variant_that_only_informs_is_found_and_pages_nobody(self) -> None:
        quiet = replace(self.detector, informs=frozenset(self.detector.variants))
        for scenario in self.scenarios():
            verdicts = replace(scenario, detector=quiet).verdicts
            assert_frame_equal(verdicts.drop(SEVERITY), scenario.verdicts.drop(SEVERITY))
            severities = verdicts[SEVERITY].drop_nulls().to_list()
            assert max(severities, default=Severity.CLEAN) <= Severity.INFO

    # Behaviour

    def test_verdicts_keep_to_the_schema(self) -> None:
        for scenario in self.scenarios():
            verdicts = scenario.verdicts
            assert {n: verdicts.schema.get(n, t) for n, t in FINDINGS.items()} == FINDINGS, str(scenario)
            rows = verdicts.select(SIGNAL, INDEX)
            # Another attempt or another series of a signal has rows of the same numbers.
            first = {stream.signal: stream for stream in reversed(scenario.streams)}
            again = sum(len(one.step) for one in scenario.streams if one is not first[one.signal])
            again += len(scenario.streams) if self.detector.at_end else 0
            assert rows.height - rows.n_unique() <= again, str(scenario)
            self.assert_valid(verdicts)

    def test_one_pass_equals_what_pieces_give(self) -> None:
        for scenario in self.scenarios():
            self.assert_same_in_pieces(scenario)

    def test_runs_do_not_leak_into_each_other(self) -> None:
        apart = pl.concat([scenario.verdicts for scenario in self.scenarios()])
        together = judge(self.detector, [*self._all_windows()])
        _assert_same(together.sort(pl.all()), apart.sort(pl.all()))

    def test_leaves_its_input_alone(self) -> None:
        window = frame(self.detector, windows(self.detector, self.scenarios()[0].streams))
        before = window.clone()
        self.detector.run(window)
        assert_frame_equal(window, before)

    def test_an_empty_window_has_no_verdicts(self) -> None:
        window = frame(self.detector, windows(self.detector, self.scenarios()[0].streams))
        assert self.detector.run(window.clear()).is_empty()

    def test_one_point_is_no_finding(self) -> None:
        verdicts = judge(self.detector, windows(self.detector, self.streams_of("0.5")))
        assert verdicts.filter(pl.col(SEVERITY) > 0).is_empty()

    def test_every_early_row_has_a_verdict_or_a_reason_for_none(self) -> None:
        rows = frame(self.detector, [*self._all_windows()])
        early = self.detector.detect(rows).filter(pl.col(INDEX) < EARLY_ROWS)
        due = (
            rows.filter(self.detector.due, pl.col(INDEX) < EARLY_ROWS)
            .select(SERIES, INDEX)
            .sort(SERIES, INDEX)
        )
        assert early.select(SERIES, INDEX).rows() == due.rows()
        assert early[SKIPPED].drop_nulls().is_in([*SkipReason]).all()
        both = pl.col(SKIPPED).is_not_null() & pl.col(SEVERITY).is_not_null()
        assert early.filter(both).is_empty()

    def test_survives_gaps_in_what_it_uses(self) -> None:
        for every in THINNED:
            self.assert_survives_gaps(every)

    def test_survives_extreme_values(self) -> None:
        all_windows = [w for text in EXTREME_STREAMS for w in windows(self.detector, self.streams_of(text))]
        self.assert_valid(judge(self.detector, all_windows))

    # Helpers

    def assert_same_in_pieces(self, scenario: Scenario) -> None:
        """Judge a scenario poll by poll, and compare that with one pass."""
        points = sum(len(stream.step) for stream in scenario.streams)
        dice = random.Random(scenario.title)  # noqa: S311  it only has to be the same every time
        ends = accumulate(dice.choice(POINTS_PER_POLL) for _ in range(points))
        cuts = [*takewhile(lambda end: end < points, ends)]
        pieces = windows(self.detector, scenario.streams, cuts, scenario.settings)
        _assert_same(scenario.verdicts, judge(self.detector, pieces))

    def assert_survives_gaps(self, every: int) -> None:
        """Judge the scenarios with only each so many-th point of the signals that are not required."""
        required = {*self.detector.judges, *self.detector.needs}
        all_windows: list[Judged] = []
        points = slice(None, None, every) if every else slice(0)
        for scenario in self.scenarios():
            streams = [
                one
                if one.signal in required
                else replace(one, step=one.step[points], value=one.value[points])
                for one in scenario.streams
            ]
            all_windows += windows(self.detector, [stream for stream in streams if len(stream.step)])
        self.assert_valid(judge(self.detector, all_windows))

    def assert_valid(self, verdicts: pl.DataFrame) -> None:
        """Check for severities that exist, and for a variant with its sentence exactly where one fired."""
        assert verdicts[SEVERITY].is_between(Severity.CLEAN, Severity.CRITICAL).all()
        fired = pl.col(SEVERITY) > Severity.CLEAN
        assert verdicts.select((pl.col(VARIANT).is_not_null() == fired).all()).item()
        for row in verdicts.filter(fired).iter_rows(named=True):
            assert message(self.detector, row)

    def streams_of(self, text: str) -> list[Stream]:
        """Return one stream with these values for each signal that the detector knows of."""
        used = (use.signal for use in self.detector.uses)
        signals = dict.fromkeys((*self.detector.judges, *self.detector.needs, *used))
        return [Stream.parse(signal.value, text) for signal in signals]

    def _all_windows(self) -> Iterator[Judged]:
        """Yield the windows of all scenarios, which may stand in one frame."""
        for scenario in self.scenarios():
            yield from windows(self.detector, scenario.streams, settings=scenario.settings)


def _assert_same(frame: pl.DataFrame, other_frame: pl.DataFrame) -> None:
    assert_frame_equal(frame, other_frame, rel_tol=RELATIVE_TOLERANCE, abs_tol=ABSOLUTE_TOLERANCE)
