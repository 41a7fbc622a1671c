import numpy as np
import pytest

from sentinel.comparison.seeds import SeedsApart
from sentinel.detectors.signals import Signal
from studies.fleets.faults import FAULTS, STRENGTHS
from studies.fleets.logs import Run, runs
from studies.fleets.measure import COUNTS, Outcome
from studies.fleets.network import Network
from studies.fleets.page import rendered
from studies.fleets.programs import LOTTERIES, PROGRAMS, Knobs, trained
from studies.fleets.seeds import SIZES, Seeds


def test_there_are_twelve_programs_and_twenty_faults():
    assert (len(PROGRAMS), len(FAULTS)) == (12, 20)
    assert len({run.path for run in runs()}) == 12 * 20 + 20 * len(STRENGTHS)


def test_a_fault_turns_one_knob_the_less_the_fainter_it_is():
    for fault in FAULTS:
        assert hasattr(Knobs(), fault.knob)
        assert [*fault.values] in (sorted(fault.values), sorted(fault.values, reverse=True)), fault.name


def test_the_gradient_is_that_of_the_outputs():
    random = np.random.default_rng(0)
    network = Network((3, 4, 2), "tanh", 1.0, random)
    inputs = random.normal(size=(5, 3))
    error = random.normal(size=(5, 2))
    gradients = network.backward(network.forward(inputs, 0.0, random), error)
    for weight, gradient in zip(network.weights, gradients, strict=True):
        place = (0,) * weight.ndim
        sums = []
        for change in (1e-6, -2e-6):
            weight[place] += change
            sums.append((network.forward(inputs, 0.0, random)[-1] * error).sum())
        assert (sums[0] - sums[1]) / 2e-6 == pytest.approx(gradient[place], rel=1e-4)


@pytest.mark.long
@pytest.mark.parametrize("program", PROGRAMS.values(), ids=PROGRAMS)
def test_a_healthy_program_learns_and_a_seed_tells_it_apart(program):
    one, other = ([*trained(program, Knobs(), seed)] for seed in (1, 2))
    tag, sign = ("train/reward", -1) if program.task == "bandit" else ("train/loss", 1)
    assert sign * np.mean([row[tag] for row in one[-50:]]) < sign * np.mean([row[tag] for row in one[:20]])
    assert one != other
    assert one == [*trained(program, Knobs(), 1)]


def test_the_page_counts_what_is_told():
    told = dict.fromkeys(COUNTS, ("loss", 0.25))
    fault = FAULTS[0]
    program = PROGRAMS["deep"]
    outcomes = [Outcome(Run(program, 0), "", dict.fromkeys(COUNTS))]
    outcomes += [
        Outcome(
            Run(program, 1, fault, n),
            "zero-gradient" if n == 0 else "",
            told if n == 1 else dict.fromkeys(COUNTS),
        )
        for n in range(3)
    ]
    seeds = [
        Seeds(program, None, dict.fromkeys(SIZES, 0)),
        Seeds(LOTTERIES["trap"], SeedsApart(Signal.REWARD, 20, "abc", 0.5, 1.5), dict.fromkeys(SIZES, 9)),
    ]
    page = rendered(outcomes, seeds)
    assert "| plain | 1 of 1 | 0 of 1 | 0 of 1 | 0 of 1 | 1 of 1 |  |" in page
    assert "| mild | 0 of 1 | 1 of 1 | 1 of 1 | 1 of 1 | 1 of 1 | 0.25 |" in page
    assert "| healthy | 0 of 1 | 0 of 1 | 0 of 1 | 0 of 1 |  |  |" in page
    assert "| deep | `zero-gradient` | loss at 0.25 | no |" in page
    assert "| the 1 programs | 0 of 1 | 0 of 50 | 0 of 50 |" in page
    assert "| trap | 3 of 20 fall short | 9 of 50 | 9 of 50 |" in page
