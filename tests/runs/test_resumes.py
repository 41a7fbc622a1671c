"""A resume after which the steps go on is told by the console alone."""

from itertools import pairwise

import numpy as np
import pytest

import sentinel
from sentinel.detectors.signals import Signal
from sentinel.runs.resumes import resumed_after
from sentinel.series.attempts import MAX_TOLD_ATTEMPTS, Attempts
from sentinel.sources.base import Chunk, Line
from sentinel.sources.console.passages import Passages
from tests.series.stored import again

NAN = float("nan")


def log(steps):
    values = np.ones((len(steps), 1))
    return Chunk.of_rows("s", ["loss"], np.array(steps), np.full(len(steps), NAN), values, False).flat


@pytest.mark.parametrize(
    ("text", "steps"),
    [
        (" loading checkpoint from /ckpt at iteration 100", [100]),
        ("  successfully loaded checkpoint from /ckpt [ t 0, p 0 ] at iteration 100", [100]),
        ("INFO - Resuming training from checkpoint out/checkpoint-100, global step 100", [100]),
        ("  Continuing training from global step 100", [100]),
        ("Resumed from step 99", []),  # the steps go back, and say so themselves
        ("loaded checkpoint best.pt at step 100, the best one", []),
        ("saving checkpoint at iteration 100", []),
        ("loading the dataset", []),
    ],
)
def test_which_lines_tell_a_resume(text, steps):
    lines = Passages()
    lines.add(["something else", text], 100)
    assert [*resumed_after(lines)] == steps
    assert [*resumed_after([Line(NAN, text, 100)])] == steps
    assert [*resumed_after([Line(NAN, text)])] == []


def attempts(steps, *resumes, ends=()):
    """The first step of each attempt, if the log comes in pieces."""
    found = Attempts()
    found.resumes += resumes
    first = {}
    for begin, end in pairwise([0, *ends, len(steps)]):
        chunk = log(steps[begin:end])
        for number, part in found.split(chunk, np.array([True]), [Signal.LOSS]):
            first.setdefault(number, int(chunk.step[part][0]))
        found = again(found)
    return [*first.values()]


@pytest.mark.parametrize("ends", [(), (3,), (4,), (5,), (2, 4, 6)])
def test_the_next_attempt_begins_behind_the_step(ends):
    assert attempts([1, 2, 3, 4, 5, 6, 7, 8], 4, 4, ends=ends) == [1, 5]


def test_steps_that_go_back_tell_it_once():
    assert attempts([1, 2, 3, 2, 3, 4, 5], 3) == [1, 2]


def test_a_log_that_begins_with_a_resume_has_one_attempt():
    assert attempts([5, 6, 7], 4) == [5]


def test_a_console_that_resumes_all_the_time_is_not_believed():
    steps = [*range(40)]
    assert len(attempts(steps, *steps)) == MAX_TOLD_ATTEMPTS


@pytest.mark.slow  # replays logs
@pytest.mark.parametrize(("lost", "found"), [(0.0, []), (1.2, ["resume-loss-jump"])])
def test_a_loss_that_jumps_at_a_told_resume_is_found(tmp_path, lost, found):
    noise = np.random.default_rng(3).normal(0.0, 0.02, 301)
    lines = []
    for step in range(1, 301):
        if step == 101:
            lines.append(" loading checkpoint from /ckpt at iteration 100")
        loss = 0.6 + 1.9 * np.exp(-step / 60) + noise[step] + lost * (step > 100)
        lines.append(f" iteration {step:8d}/     300 | learning rate: 1.5E-04 | lm loss: {loss:.6E} |")
    path = tmp_path / "train.log"
    path.write_text("\n".join(lines) + "\n")
    (run,) = sentinel.replay(path).runs
    assert [one.detector for one in run.incidents if one.detector.startswith("resume")] == found
