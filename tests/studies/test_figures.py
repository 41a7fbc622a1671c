"""The simulations: a healthy run is left alone, and each fault is found where the noise is small."""

import numpy as np
import pytest

from sentinel.detectors.api import Maturity
from studies.figures import by_run
from studies.figures.healthy import FAMILIES
from studies.figures.measure import EVALUATED, alarms, fault_of, kinds, simulable
from studies.figures.page import PAGE, read, rendered, shortfalls
from studies.figures.shapes import drawn
from studies.figures.sick import SICK, of_onset
from tests.detectors.onsets import onset

RUNS = 10
POINTS = {  # others: 100
    "epoch-periodic-loss": 400,
    "loss-plateau": 200,
    "loss-scales-with-padding": 300,
    "loss-spike": 400,
    "memory-growth": 400,
    "missing-loss": 400,
    "resume-loss-jump": 1_000,
    "throughput-shift": 400,
}
DETECTORS = simulable()
FAULTS = {name: fault for name, one in DETECTORS.items() if (fault := fault_of(one))}
each_detector = pytest.mark.parametrize("name", FAULTS)


def simulated(name, families, noise, resumes):
    detector = DETECTORS[name]
    random = np.random.default_rng(3)
    each = any(signal in EVALUATED for signal in detector.judges)
    shapes = [
        drawn(random, POINTS.get(name, 100), noise, each_evaluated=each, resumes=resumes) for _ in range(RUNS)
    ]
    runs = [kind(random, shape).settled() for kind in families for shape in shapes]
    points, steps = alarms(detector, runs)
    assert points, "no row was judged"
    return steps


@pytest.mark.slow
@each_detector
@pytest.mark.parametrize("noise", [0.01, 0.2])
def test_leaves_healthy_runs_alone(name, noise):
    assert not any(simulated(name, kinds(DETECTORS[name]), noise, resumes=True))


@pytest.mark.slow  # many runs
@each_detector
def test_finds_its_fault(name):
    kind, _ = FAULTS[name]
    assert sum(map(bool, simulated(name, [kind], 0.01, resumes=False))) >= 0.8 * RUNS


@pytest.mark.slow
def test_the_page_shows_the_figures():
    assert PAGE.read_text() == rendered(read()), "run `make detector-figures`"


STABLE = [name for name in read() if DETECTORS[name].maturity is Maturity.STABLE]


def test_every_stable_detector_has_a_fault_and_figures():
    stable = {name for name, one in DETECTORS.items() if one.maturity is Maturity.STABLE}
    assert stable <= {*FAULTS} & {*read()} & {*by_run.read()}


def test_no_fault_and_no_figures_are_those_of_a_detector_that_is_gone():
    assert {*SICK} | {*read()} | {*by_run.read()} <= {*DETECTORS}


@pytest.mark.slow
def test_the_onset_of_a_golden_is_a_fault_where_there_is_no_simulation():
    detector = DETECTORS["kl-blowup"]
    kind = of_onset(onset(detector), evaluated=False)
    assert sum(map(bool, simulated("kl-blowup", [kind], 0.01, resumes=False))) == RUNS


@pytest.mark.parametrize("name", STABLE)
def test_a_stable_detector_has_good_figures(name):
    assert not shortfalls(name, read()[name])


@pytest.mark.slow
def test_all_stable_detectors_together_ring_seldom():
    assert not by_run.broken(by_run.together(by_run.read()), by_run.ONE_IN_TOGETHER)


@pytest.mark.long  # whole runs
def test_healthy_runs_are_counted_by_length_and_noise():
    rang = by_run.measured(["zero-eval-metric"], {10: 2})
    assert rang == {"zero-eval-metric": {10: [(2, 0)] * len(by_run.CELLS)}}


def test_more_than_one_run_in_two_hundred_breaks_the_standard():
    cells = [(100, 0)] * 5
    assert not by_run.broken({50: [*cells, (100, 1)]})
    assert by_run.broken({50: [*cells, (100, 4)]}) == ["rings on 4 of 600 healthy runs of 50 points"]
    assert by_run.broken({50: [*cells, (1000, 6)], 10: [(1000, 7)]})[0].endswith("of 10 points")
    assert not by_run.broken({50: [*cells, (100, 2)]}, one_in=60)


@pytest.mark.slow
def test_all_that_ask_a_settled_run_for_a_signal_get_the_same():
    random = np.random.default_rng(3)
    run = FAMILIES[0](random, drawn(random, 20, 0.2, each_evaluated=False, resumes=False)).settled()
    assert (run.logged["loss"]() == run.logged["loss"]()).all()
