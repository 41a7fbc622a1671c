"""How an outcome stands beside rows, and that no cut into polls changes it."""

import numpy as np
import pytest

from sentinel.detectors.reading.standing import FIRST_LOOK, next_look, standing
from sentinel.detectors.signals import Signal
from sentinel.series.attempts import Points
from sentinel.series.standings import Standing
from tests.each import each
from tests.series.stored import again

RISES = np.r_[np.zeros(20), np.linspace(0, 1, 60)]
HALF_LOST = np.r_[RISES, np.full(40, 0.5)]


@each([(RISES, 1.0), (HALF_LOST, 0.5), (-RISES, 0.0), (np.zeros(50), 0.0)], lambda case: str(case[1]))
def test_it_is_the_share_of_the_gain_that_is_there(case):
    rows, expected = case
    assert standing(rows, higher_is_better=True) == pytest.approx(expected, abs=0.05)
    assert standing(-rows, higher_is_better=False) == pytest.approx(expected, abs=0.05)


def test_noise_is_no_gain():
    rows = np.random.default_rng(0).normal(0, 1, 64)
    assert standing(rows, higher_is_better=True) == 0


def looks(rows, cuts):
    history = Standing()
    found = []
    for part in np.split(np.arange(len(rows)), cuts):
        points = Points("r", Signal.REWARD, 10 * part, part.astype(float), part, rows[part])
        found.append(history.extend(points, "s"))
        history = again(history)
    return [
        (int(step), int(position), float(value))
        for one in found
        for step, position, value in zip(one.step, one.position, one.value, strict=True)
    ]


@each([[1], [9, 10, 11], [500], range(1, 1000, 7), range(1, 1000)], str)
def test_any_cut_gives_the_same_looks(cuts):
    rows = np.random.default_rng(1).normal(0, 1, 1000).cumsum()
    whole = looks(rows, [])
    assert looks(rows, [*cuts]) == whole
    assert [position + 1 for _, position, _ in whole][:3] == [FIRST_LOOK, next_look(FIRST_LOOK), 12]
    assert len(whole) < 60
