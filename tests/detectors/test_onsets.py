"""The onset is the first bad point, for every rule whose metric can jump, climb or slide away.

Of a jump it is exact. A climb and a slide have no first bad point that all would agree on: their onset lies
after they began and before they are halfway.
"""

import json
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

import pytest

from detectors.signals import Signal
from sentinel.config.file import Config
from sentinel.replaying import replay

GOOD, UNFOLDS = 300, 60  # rows before the trouble, and rows in which it unfolds
AFTER = 300


@dataclass(frozen=True)
class Case:
    """A metric that leaves a good level for a bad one. ``beside`` are the levels of others, then and now."""

    detector: str
    signal: Signal
    good: float
    bad: float
    beside: Mapping[Signal, tuple[float, float]] = field(default_factory=dict)
    by_factors: bool = False  # it unfolds in equal factors rather than in equal parts

    def level(self, share: float) -> float:
        """The metric when this share of the trouble has unfolded."""
        if self.by_factors:
            return self.good * (self.bad / self.good) ** share
        return self.good + share * (self.bad - self.good)


WORSE = {Signal.REWARD: (1.0, 0.2)}
CASES = (
    Case("loss-divergence", Signal.LOSS, 1.0, 4.0),
    Case("eval-metric-collapse", Signal.EVAL_ACCURACY, 0.8, 0.1),
    Case("kl-blowup", Signal.KL, 0.02, 3.0, WORSE),
    Case("entropy-collapse", Signal.ENTROPY, 2.0, 0.02, WORSE),
    Case("clip-fraction-saturation", Signal.CLIP_FRACTION, 0.1, 0.6, WORSE),
    Case("clipped-completion-ratio", Signal.CLIPPED_COMPLETION_RATIO, 0.05, 0.95, WORSE),
    Case("completion-length-drift", Signal.COMPLETION_LENGTH, 100.0, 400.0, WORSE),
    Case("exploding-grad-norm", Signal.GRAD_NORM, 1.0, 40.0, {Signal.LOSS: (1.0, 1.2)}),
    Case("vanishing-grad-norm", Signal.GRAD_NORM, 1.0, 1e-4, {Signal.LOSS: (1.0, 0.99)}, by_factors=True),
    Case("throughput-shift", Signal.STEP_TIME, 1.0, 8.0),
    Case("off-policy-drift", Signal.SAMPLING_LOGP_DIFFERENCE, 0.01, 2.0, WORSE),
    Case("quality-loss-divergence", Signal.FRECHET_INCEPTION_DISTANCE, 20.0, 60.0, {Signal.LOSS: (1.0, 0.5)}),
)
SHAPES: Mapping[str, Callable[[int], float]] = {
    "jump": lambda _: 1.0,
    "ramp": lambda row: min(1.0, (row + 1) / UNFOLDS),
    "slide": lambda row: min(1.0, (row + 1) / UNFOLDS) ** 2,
}


def logged(case: Case, unfolded: Callable[[int], float]) -> str:
    """A log of the case: noise of one per cent about a good level, then about what the shape makes of it."""
    lines = []
    for row in range(GOOD + AFTER):
        share = 0.0 if row < GOOD else unfolded(row - GOOD)
        level = case.level(share) * (1 + 0.01 * math.sin(7.3 * row))
        beside = {signal.value: pair[row >= GOOD] for signal, pair in case.beside.items()}
        lines.append(json.dumps({"step": row, case.signal.value: level, **beside}) + "\n")
    return "".join(lines)


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.detector)
def test_the_onset_is_the_first_bad_point(tmp_path, case, shape):
    log = tmp_path / "metrics.jsonl"
    log.write_text(logged(case, SHAPES[shape]))
    config = Config(signals={signal.value: signal.value for signal in (case.signal, *case.beside)})
    (run,) = replay([log], config, lambda *_: None).runs
    found = [one for one in run.incidents.values() if one.detector == case.detector]
    assert found, [one.detector for one in run.incidents.values()]
    onset = min(one.onset_step for one in found)
    if shape == "jump":
        assert onset == GOOD
    else:
        halfway = next(row for row in range(UNFOLDS) if SHAPES[shape](row) > 0.5)
        assert GOOD <= onset <= GOOD + halfway


def test_a_fall_of_an_accuracy_begins_at_its_first_low_evaluation(tmp_path):
    learned, lost = (0.41, 0.55, 0.62, 0.66, 0.69, 0.70, 0.71, 0.72, 0.72), (0.36, 0.21, 0.10, 0.10)
    evaluations = {43 * n: accuracy for n, accuracy in enumerate((*learned, *lost), 1)}
    bad = 43 * (len(learned) + 1)
    log = tmp_path / "metrics.jsonl"
    log.write_text("".join(f'{{"step": {s}, "eval_accuracy": {v}}}\n' for s, v in evaluations.items()))
    (run,) = replay([log], Config(), lambda *_: None).runs
    (found,) = [one for one in run.incidents.values() if one.detector == "eval-metric-collapse"]
    assert (bad, found.onset_step) == (430, 430)
    assert found.fired_step > 430
    assert "to 0.1 and stays there" in found.summary
