"""The onset is the first bad point, for every detector whose metric can jump, climb or slide away.

Of a jump it is exact. A climb and a slide have no first bad point that all would agree on: their onset lies
after they began and before they are halfway. The golden of a detector says how its metric goes wrong.
"""

import json
import math
from collections.abc import Callable, Mapping

import pytest

from sentinel.config.file import Config
from sentinel.detectors.api import Detector
from sentinel.detectors.discovery import all_detectors
from sentinel.replays.replaying import replay
from tests.chosen_detectors import choose_detectors
from tests.detectors import golden
from tests.detectors.onsets import Onset, block, onset

GOOD = 300
"""Rows before the change."""

UNFOLDS = 60
"""Rows in which it happens."""

AFTER = 300
"""Rows from the change on."""

SHAPES: Mapping[str, Callable[[int], float]] = {
    "jump": lambda _: 1.0,
    "ramp": lambda row: min(1.0, (row + 1) / UNFOLDS),
    "slide": lambda row: min(1.0, (row + 1) / UNFOLDS) ** 2,
}


RULES = {name: one for name, one in all_detectors().items() if isinstance(one, Detector)}
CASES = [case for one in RULES.values() if (case := onset(one))]


def logged(case: Onset, unfolded: Callable[[int], float]) -> str:
    """A log of the case: noise about a good level, then about what the shape makes of it."""
    lines = []
    for row in range(GOOD + AFTER):
        share = 0.0 if row < GOOD else unfolded(row - GOOD)
        level = case.level(row, share) * (1 + case.noise * math.sin(7.3 * row))
        beside = {signal.value: pair[row >= GOOD] for signal, pair in case.beside.items()}
        lines.append(json.dumps({"step": row, case.signal.value: level, **beside}) + "\n")
    return "".join(lines)


def test_a_golden_without_an_onset_is_named(tmp_path, monkeypatch):
    monkeypatch.setattr(golden, "FOLDER", tmp_path)
    golden.path_of(RULES["kl-blowup"]).write_text("# kl-blowup\n\n### One\n")
    with pytest.raises(ValueError, match=r"kl_blowup\.md has no onset block"):
        block(RULES["kl-blowup"])


@pytest.mark.slow
@pytest.mark.parametrize(
    ("case", "shape"),
    [
        pytest.param(case, shape, id=f"{case.detector} {shape}")
        for case in CASES
        for shape in SHAPES
        if shape == "jump" or not case.jumps_only
    ],
)
def test_the_onset_is_the_first_bad_point(tmp_path, monkeypatch, case, shape):
    choose_detectors(monkeypatch, {case.detector: RULES[case.detector]})
    log = tmp_path / "metrics.jsonl"
    log.write_text(logged(case, SHAPES[shape]))
    config = Config(signals={signal.value: signal.value for signal in (case.signal, *case.beside)})
    (run,) = replay([log], config, lambda *_: None).runs
    first_step = min(one.onset_step for one in run.incidents.values())
    if shape == "jump":
        assert first_step == GOOD
    else:
        halfway = next(row for row in range(UNFOLDS) if SHAPES[shape](row) > 0.5)
        assert GOOD <= first_step <= GOOD + halfway


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
