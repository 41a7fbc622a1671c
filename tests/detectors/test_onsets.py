"""The onset is the first bad point, for every detector whose metric can jump, climb or slide away.

Of a jump it is exact. A climb and a slide have no first bad point that all would agree on: their onset lies
after they began and before they are halfway.
"""

import json
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

import pytest

from sentinel.config.file import Config
from sentinel.detectors.api import Detector
from sentinel.detectors.discovery import all_detectors
from sentinel.detectors.signals import Signal
from sentinel.replays.replaying import replay
from tests.chosen_detectors import choose_detectors

LEARNS = 100  # rows, of a metric that has to become good first
# rows before the trouble, and rows in which it unfolds
GOOD = 300
UNFOLDS = 60
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
    learns_from: float | None = None  # it first comes from there to its good level
    noise: float = 0.01  # share of the level
    jumps_only: str = ""  # why a climb and a slide have no meaning, if so

    @property
    def shapes(self) -> list[str]:
        """The shapes that the trouble can have."""
        return ["jump"] if self.jumps_only else [*SHAPES]

    def level(self, row: int, share: float) -> float:
        """The metric in a row when this share of the trouble has unfolded."""
        if self.learns_from is not None and row < LEARNS:
            return self.learns_from + row / LEARNS * (self.good - self.learns_from)
        if share == 0:
            return self.good
        if self.by_factors:
            return self.good * (self.bad / self.good) ** share
        return self.good + share * (self.bad - self.good)


WORSE = {Signal.REWARD: (1.0, 0.2)}
SUDDEN = "it compares with the fifty rows before, which a slow change fills as well"
FEW_ROWS = "it remembers five histograms, so what takes longer began before"
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
    Case("reward-collapse", Signal.REWARD, 1.0, 0.1, learns_from=0.0),
    Case("reward-zero-std", Signal.FRAC_REWARD_ZERO_STD, 0.5, 1.0, noise=0),
    Case("dead-activation-growth", Signal.DEAD_FRACTION, 0.05, 0.7),
    Case("update-ratio-out-of-band", Signal.UPDATE_RATIO, 1e-3, 0.5),
    Case("quality-loss-divergence", Signal.FRECHET_INCEPTION_DISTANCE, 20.0, 60.0, {Signal.LOSS: (1.0, 0.5)}),
    Case("loss-scale-collapse", Signal.LOSS_SCALE, 65536.0, 1.0, by_factors=True, noise=0),
    Case("generalization-gap", Signal.EVAL_LOSS, 1.0, 3.0, {Signal.LOSS: (1.0, 0.5)}, learns_from=2.0),
    Case(
        "likelihood-displacement", Signal.LOGPS_CHOSEN, -100.0, -300.0, {Signal.PREFERENCE_MARGIN: (0.5, 1)}
    ),
    Case("attention-logit-growth", Signal.MAX_ATTENTION_LOGIT, 60.0, 300.0),
    Case("output-logit-growth", Signal.LOG_PARTITION, 60.0, 300.0),
    Case(
        "lost-environment-state",
        Signal.REPLAY_SIZE,
        1000.0,
        100.0,
        noise=0,
        jumps_only="what is lost is lost at once",
    ),
    Case("router-collapse", Signal.MOE_AUXILIARY_LOSS, 1.0, 3.0),
    Case("entropy-explosion", Signal.ENTROPY, 0.5, 4.0, WORSE),
    Case(
        "discriminator-wins",
        Signal.DISCRIMINATOR_LOSS,
        1.3,
        0.002,
        {Signal.GENERATOR_LOSS: (0.7, 8.0)},
        by_factors=True,
    ),
    Case("tool-failures", Signal.TOOL_FAILURE_SHARE, 0.1, 0.6, WORSE, jumps_only=SUDDEN),
    Case("loader-starvation", Signal.DATA_SHARE, 0.2, 0.9),
    Case("loss-spike", Signal.LOSS, 1.0, 6.0, jumps_only="what climbs is no spike"),
    Case("non-finite-metric", Signal.LOSS, 1.0, math.nan, jumps_only="no number lies half way to NaN"),
    Case("zero-gradient", Signal.GRAD_NORM, 1.0, 0.0, jumps_only="only exactly 0 is bad"),
    Case("zero-eval-metric", Signal.MEAN_AVERAGE_PRECISION, 0.4, 0.0, jumps_only="only exactly 0 is bad"),
    Case("evaluation-mode", Signal.TRAINING_SHARE, 1.0, 0.0, noise=0, jumps_only="only exactly 0 is bad"),
    Case("weights-unchanged", Signal.UNCHANGED_SHARE, 0.0, 1.0, noise=0, jumps_only="only all is bad"),
    Case("histogram-degeneration", Signal.HISTOGRAM_ZERO_SHARE, 0.05, 1.0, noise=0, jumps_only=FEW_ROWS),
)
RESTS = "it judges that a metric does not move"
RELATES = "it judges how two metrics, or two parts of one, go together"
SCATTERS = "it judges how a metric scatters, not its level"
SETTINGS = "it compares with the settings of the run"
WHOLE = "it judges a whole curve once the run is over"
BOUNDED = "its numbers are right or wrong from the start"
OTHERS = {
    "outcome-reading": WHOLE,
    "broken-batches": BOUNDED,
    "broken-evaluation": BOUNDED,
    "broken-wiring": BOUNDED,
    "misscaled-gradient": BOUNDED,
    "scheduler-out-of-step": BOUNDED,
    "class-collapse": RESTS,
    "flat-loss-at-init": RESTS,
    "loss-plateau": RESTS,
    "preference-margin-stall": RESTS,
    "repeated-loss": RESTS,
    "reward-stagnation": RESTS,
    "saturated-gradient-clipping": RESTS,
    "weights-left-out": RESTS,
    "epoch-periodic-loss": RELATES,
    "init-loss-mismatch": RELATES,
    "loss-accuracy-mismatch": RELATES,
    "loss-scales-with-padding": RELATES,
    "perplexity-inconsistency": RELATES,
    "pretrained-regression": RELATES,
    "resume-discontinuity": RELATES,
    "resume-loss-jump": RELATES,
    "train-eval-mismatch": RELATES,
    "eval-metric-instability": SCATTERS,
    "reward-scale-instability": SCATTERS,
    "epoch-length-mismatch": SETTINGS,
    "lr-schedule-mismatch": SETTINGS,
    "lr-schedule-restart": SETTINGS,
    "odd-metric": "it tells of metrics that no rule knows",
    "memory-growth": "it judges that a metric has grown evenly since the run began",
    "metric-band": "its bands are those of one method; it is off by default",
}
"""Detectors whose metric does not leave a good level for a bad one, and why."""
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
        level = case.level(row, share) * (1 + case.noise * math.sin(7.3 * row))
        beside = {signal.value: pair[row >= GOOD] for signal, pair in case.beside.items()}
        lines.append(json.dumps({"step": row, case.signal.value: level, **beside}) + "\n")
    return "".join(lines)


def test_every_detector_is_a_case_or_says_why_it_is_none():
    rules = {name for name, one in all_detectors().items() if isinstance(one, Detector)}
    assert rules == {*OTHERS, *(case.detector for case in CASES)}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("case", "shape"),
    [pytest.param(case, shape, id=f"{case.detector} {shape}") for case in CASES for shape in case.shapes],
)
def test_the_onset_is_the_first_bad_point(tmp_path, monkeypatch, case, shape):
    choose_detectors(monkeypatch, {case.detector: all_detectors()[case.detector]})
    log = tmp_path / "metrics.jsonl"
    log.write_text(logged(case, SHAPES[shape]))
    config = Config(signals={signal.value: signal.value for signal in (case.signal, *case.beside)})
    (run,) = replay([log], config, lambda *_: None).runs
    onset = min(one.onset_step for one in run.incidents.values())
    if shape == "jump":
        assert onset == GOOD
    else:
        halfway = next(row for row in range(UNFOLDS) if SHAPES[shape](row) > 0.5)
        assert GOOD <= onset <= GOOD + halfway


@pytest.mark.slow
def test_a_fall_of_an_accuracy_begins_at_its_first_low_evaluation(tmp_path):
    learned = (0.41, 0.55, 0.62, 0.66, 0.69, 0.70, 0.71, 0.72, 0.72)
    lost = (0.36, 0.21, 0.10, 0.10)
    evaluations = {43 * n: accuracy for n, accuracy in enumerate((*learned, *lost), 1)}
    bad = 43 * (len(learned) + 1)
    log = tmp_path / "metrics.jsonl"
    log.write_text("".join(f'{{"step": {s}, "eval_accuracy": {v}}}\n' for s, v in evaluations.items()))
    (run,) = replay([log], Config(), lambda *_: None).runs
    (found,) = [one for one in run.incidents.values() if one.detector == "eval-metric-collapse"]
    assert (bad, found.onset_step) == (430, 430)
    assert found.fired_step > 430
    assert "to 0.1 and stays there" in found.summary


@pytest.mark.slow
@pytest.mark.parametrize(("learned", "onset"), [(0, 10), (9, 100)], ids=["always", "then"])
def test_an_accuracy_that_no_longer_changes_does_so_from_its_first_equal_evaluation(tmp_path, learned, onset):
    log = tmp_path / "metrics.jsonl"
    accuracies = [0.3 + 0.04 * n for n in range(learned)] + [0.25] * 14
    rows = ({"step": 10 * n, "eval_accuracy": accuracy} for n, accuracy in enumerate(accuracies, 1))
    log.write_text("".join(json.dumps(row) + "\n" for row in rows))
    (run,) = replay([log], Config(), lambda *_: None).runs
    assert [one.onset_step for one in run.incidents.values() if one.detector == "class-collapse"] == [onset]
