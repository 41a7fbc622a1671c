"""Fits one card: weights with imposed signs, one repository weighs one, few lines, whole points at the end.

A directory's score is that of its best curve (multiple instances). A logistic regression gives the weights;
lines are chosen one by one by what they add; then the weights are rounded to whole points.
"""

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType

import numpy as np
import polars as pl
from scipy.optimize import minimize

from sentinel.detectors.reading.cards import MAX_LINES
from sentinel.detectors.stats import Floats, Ints
from studies.cards.forms import Candidate, Form
from studies.cards.labels import Label

PENALTY = 1.0
ROUNDS = 4  # of sharing a directory's label among its curves
SHARED = 0.15  # of a label that all curves of a directory share alike
MOST_POINTS = 6  # of the heaviest line
FEWEST_TRUE = 4
FEWEST_FALSE = 10


@dataclass(frozen=True)
class FittedLine:
    """A line of a fitted card: whole points at the second and the third mark."""

    candidate: Candidate
    points: tuple[int, int]


@dataclass(frozen=True)
class FittedCard:
    """``slope`` and ``bias`` bring points to log odds, by which cards of different folds can be compared."""

    form: Form
    lines: tuple[FittedLine, ...]
    slope: float
    bias: float

    def points(self, table: pl.DataFrame) -> Floats:
        """Return the points of each row of a table."""
        total = np.zeros(len(table))
        for line in self.lines:
            steps = np.diff([0, *line.points])
            total += line.candidate.ramps(table[line.candidate.measurement].to_numpy()) @ steps
        return total

    def odds(self, table: pl.DataFrame) -> Floats:
        """Return the log odds of each row."""
        return self.points(table) * self.slope + self.bias


def fit(
    form: Form,
    table: pl.DataFrame,
    labels: Mapping[str, Label],
    homes: Collection[str],
    share: Mapping[str, float] = MappingProxyType({}),
) -> FittedCard | None:
    """Fit a card on some directories; None if too few of them tell anything.

    ``share`` is that of the claim in what a directory's label says, 1 where it is not given: a label that
    names several claims says only that one of them is true.
    """
    truth = {home: said for home in homes if (said := labels[home].truth(form.detectors)) is not None}
    rows = table.filter(form.reads() & pl.col("home").is_in([*truth]))
    used = sorted(set(rows["home"]))
    said = np.array([truth[home] for home in used], float)
    if said.sum() < FEWEST_TRUE or (1 - said).sum() < FEWEST_FALSE:
        return None
    weight = _weights(used, said, labels) * np.array([share.get(home, 1.0) for home in used])
    of = np.searchsorted(np.array(used), rows["home"].to_numpy())
    ramps = {c: c.ramps(rows[c.measurement].to_numpy()) for c in form.candidates}
    whole = _fitted([*ramps], ramps, said, of, weight)
    chosen = _chosen(whole, ramps, said, of, weight)
    lines = _fitted(chosen, ramps, said, of, weight)
    heaviest = max(abs(sum(w)) for w in lines.weights.values())
    if heaviest <= 0:
        return None
    slope = heaviest / MOST_POINTS
    pointed = []
    for candidate, (first, second) in lines.weights.items():
        points = round(first / slope), round((first + second) / slope)
        if points[1]:
            pointed.append(FittedLine(candidate, points))
    return FittedCard(form, tuple(pointed), slope, lines.bias)


@dataclass(frozen=True)
class _Weights:
    weights: Mapping[Candidate, tuple[float, float]]
    bias: float


def _weights(homes: Sequence[str], said: Floats, labels: Mapping[str, Label]) -> Floats:
    """Return what each directory weighs: each repository alike, true and false ones the same in all."""
    keys = [(labels[home].repository, truth) for home, truth in zip(homes, said.tolist(), strict=True)]
    count = Counter(keys)
    weight = np.array([labels[home].weight / count[key] for home, key in zip(homes, keys, strict=True)])
    both = weight.sum()
    for truth in (0.0, 1.0):
        weight[said == truth] *= both / 2 / weight[said == truth].sum()
    return weight


def _fitted(
    lines: Sequence[Candidate], ramps: Mapping[Candidate, Floats], said: Floats, of: Ints, weight: Floats
) -> _Weights:
    """Return the weights of some lines, from all curves of the directories."""
    signs = np.repeat([-1.0 if line.takes else 1.0 for line in lines], 2)
    x = np.hstack([ramps[line] for line in lines]) * signs
    size = np.bincount(of, minlength=len(said))
    share = 1 / size[of]
    b = np.zeros(x.shape[1] + 1)
    for _ in range(ROUNDS):
        b = _regression(x, said[of], weight[of] * share, b)
        z = x @ b[:-1] + b[-1]
        top = np.full(len(said), -np.inf)
        np.maximum.at(top, of, z)
        e = np.exp(2 * (z - top[of]))
        share = SHARED / size[of] + (1 - SHARED) * e / np.bincount(of, e, len(said))[of]
    own = (b[:-1] * signs).reshape(-1, 2)
    return _Weights(
        {line: (float(a), float(z)) for line, (a, z) in zip(lines, own, strict=True)}, float(b[-1])
    )


def _regression(x: Floats, said: Floats, weight: Floats, begin: Floats) -> Floats:
    """Return the weights, none below zero, and the bias of a logistic regression."""
    sign = np.where(said > 0, 1.0, -1.0)

    def loss(b: Floats) -> tuple[float, Floats]:
        s = sign * (x @ b[:-1] + b[-1])
        value = np.sum(weight * np.logaddexp(0, -s)) + 0.5 * PENALTY * np.sum(b[:-1] ** 2)
        g = -weight * sign / (1 + np.exp(np.clip(s, -500, 500)))
        return float(value), np.append(x.T @ g + PENALTY * b[:-1], g.sum())

    bounds = [(0, None)] * x.shape[1] + [(None, None)]
    return minimize(loss, begin, jac=True, method="L-BFGS-B", bounds=bounds, options={"maxiter": 80}).x


def _chosen(
    whole: _Weights, ramps: Mapping[Candidate, Floats], said: Floats, of: Ints, weight: Floats
) -> list[Candidate]:
    """Return the lines that add most, chosen one by one on the best curve of each directory."""
    z = sum(ramps[line] @ np.array(w) for line, w in whole.weights.items()) + whole.bias
    order = np.lexsort((z, of))
    best = order[np.append(np.flatnonzero(np.diff(of[order])), len(order) - 1)]
    heavy = [line for line, w in whole.weights.items() if np.abs(w).max() > 1e-3]
    chosen: list[Candidate] = []
    while len(chosen) < min(MAX_LINES, len(heavy)):
        trials = {
            line: _misfit([*chosen, line], ramps, said, best, weight) for line in heavy if line not in chosen
        }
        chosen.append(min(trials, key=trials.__getitem__))
    return chosen


def _misfit(
    lines: Sequence[Candidate], ramps: Mapping[Candidate, Floats], said: Floats, best: Ints, weight: Floats
) -> float:
    signs = np.repeat([-1.0 if line.takes else 1.0 for line in lines], 2)
    x = np.hstack([ramps[line][best] for line in lines]) * signs
    b = _regression(x, said, weight, np.zeros(x.shape[1] + 1))
    s = np.where(said > 0, 1.0, -1.0) * (x @ b[:-1] + b[-1])
    return float(np.sum(weight * np.logaddexp(0, -s)))
