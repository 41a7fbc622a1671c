"""Fits the forest: trees over all measurements of an outcome and its companions, as a second opinion.

A directory's score is that of its worst curve, so a curve of an ill one counts by how ill it looks to trees
that have not seen its repository. The same trees tell how healthy curves score.
"""

from collections import Counter
from collections.abc import Mapping
from typing import Any

import numpy as np
import polars as pl

from sentinel.detectors.reading.forest import LEAF, MAX_SIZE, MEASURED, ROLES, Forest
from sentinel.detectors.stats import Floats, Ints
from studies.cards.labels import FOLDS, Label
from studies.cards.writing import SAYS

ROUNDS = 2  # of sharing a directory's label among its curves
SHARPNESS = 4.0  # of the shares, per log odds
SHARES = (0.0, 0.5, 0.8, 0.9, 0.95, 0.97, 0.98, 0.985, 0.99, 0.995, 0.999)  # of healthy runs
DIGITS = 4  # of thresholds; the values of leaves have as many decimals
TREES: Mapping[str, Any] = {
    "max_iter": 200,
    "learning_rate": 0.06,
    "max_leaf_nodes": 12,
    "min_samples_leaf": 15,
    "l2_regularization": 5,
    "max_features": 0.3,
    "random_state": 0,
}


def fit_forest(table: pl.DataFrame, labels: Mapping[str, Label]) -> Forest:
    """Return the forest of a table of measured series, with what healthy runs score in left-out folds."""
    table = table.filter(
        pl.col("home").is_in([home for home, label in labels.items() if label.healthy is not None])
    )
    homes = table["home"].to_list()
    x = inputs_of(table)
    ill = np.array([labels[home].healthy is False for home in homes])
    fold = np.array([labels[home].fold for home in homes])
    margins = None
    for _ in range(ROUNDS):
        margins = _left_out(x, ill, fold, _weights(homes, ill, margins, labels))
    model = _fitted(x, ill, _weights(homes, ill, margins, labels))
    scored = pl.DataFrame({"home": homes, "ill": ill, "margin": margins})
    healthy = scored.filter(~pl.col("ill")).group_by("home").agg(pl.col("margin").max())
    return _forest(model, np.quantile(healthy["margin"].to_numpy(), SHARES))


def inputs_of(table: pl.DataFrame) -> Floats:
    """Return the inputs of the forest for each row of a table: rows x inputs."""
    measured = np.clip(table.select(MEASURED).to_numpy().astype(float), -MAX_SIZE, MAX_SIZE)
    roles = np.array([[one == role for role in ROLES] for one in table["role"]], float)
    return np.hstack([measured, roles])


def _weights(homes: list[str], ill: Any, margins: Floats | None, labels: Mapping[str, Label]) -> Floats:
    """Return what each curve weighs; a repository weighs the square root of its directories."""
    of_home: dict[str, list[int]] = {}
    for number, home in enumerate(homes):
        of_home.setdefault(home, []).append(number)
    count = Counter(labels[home].repository for home in of_home)
    weight = np.zeros(len(homes))
    for home, numbers in of_home.items():
        rows = np.array(numbers)
        share = np.full(len(rows), 1 / (len(rows) if ill[rows[0]] else np.sqrt(len(rows))))
        if ill[rows[0]] and margins is not None:
            share = np.exp(SHARPNESS * (margins[rows] - margins[rows].max()))
            share /= share.sum()
        weight[rows] = labels[home].weight * share / np.sqrt(count[labels[home].repository])
    return weight


def _left_out(x: Floats, ill: Any, fold: Ints, weight: Floats) -> Floats:
    """Return the log odds of each curve by trees that have not seen its fold."""
    margins = np.zeros(len(x))
    for number in range(FOLDS):
        is_asked = fold == number
        if is_asked.any():
            model = _fitted(x[~is_asked], ill[~is_asked], weight[~is_asked])
            margins[is_asked] = model.decision_function(x[is_asked])
    return margins


def _fitted(x: Floats, ill: Any, weight: Floats) -> Any:
    from sklearn.ensemble import HistGradientBoostingClassifier

    return HistGradientBoostingClassifier(**TREES).fit(x, ill, sample_weight=weight)


def _forest(model: Any, healthy: Floats) -> Forest:
    trees = [tree.nodes for (tree,) in model._predictors]
    roots = np.cumsum([0, *(len(tree) for tree in trees)])
    nodes = np.concatenate(trees)
    is_leaf = nodes["is_leaf"].astype(bool)
    marks = np.where(is_leaf, 0.0, nodes["num_threshold"])  # endless where only what is unknown goes up
    offset = np.repeat(roots[:-1], [len(tree) for tree in trees])

    def places(name: str) -> list[int]:
        children: Ints = np.where(is_leaf, 0, nodes[name] + offset)
        return children.tolist()

    return Forest(
        says={name: SAYS[name] for name in MEASURED},
        base=round(float(np.ravel(model._baseline_prediction)[0]), DIGITS),
        roots=roots[:-1].tolist(),
        inputs=np.where(is_leaf, LEAF, nodes["feature_idx"]).tolist(),
        marks=[float(f"{mark:.{DIGITS}g}") for mark in np.clip(marks, -MAX_SIZE, MAX_SIZE)],
        below=places("left"),
        above=places("right"),
        unknown_below=(nodes["missing_go_to_left"].astype(bool) & ~is_leaf).tolist(),
        odds=nodes["value"].round(DIGITS).tolist(),
        shares=SHARES,
        healthy=tuple(healthy.round(DIGITS).tolist()),
    )
