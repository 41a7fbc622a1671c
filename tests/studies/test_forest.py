"""The forest that `make forest` fits answers as the library that grew it does."""

import numpy as np
import polars as pl
import pytest

from sentinel.detectors.reading.forest import MEASURED, ROLES
from studies.cards.forest import SHARES, fit_forest
from studies.cards.labels import FOLDS, Label

pytest.importorskip("sklearn")  # which an environment of its own has

HOMES = 60


def test_a_forest_tells_ill_from_healthy_by_what_tells_them_apart():
    random = np.random.default_rng(0)
    homes = [f"run-{number}" for number in range(HOMES)]
    labels = {
        home: Label(home, "drawn", f"drawn/{number}", number % FOLDS, number % 2 == 0, (), frozenset(), "-")
        for number, home in enumerate(homes)
    }
    drawn = {name: random.normal(size=HOMES) for name in MEASURED}
    drawn["trend"] = np.array([1.0 if labels[home].healthy else -1.0 for home in homes])
    table = pl.DataFrame({"home": homes, "role": [ROLES[0].value] * HOMES, **drawn})
    forest = fit_forest(table, labels)
    opinions = [
        forest.opinion({name: float(row[name]) for name in MEASURED}, ROLES[0])
        for row in table.iter_rows(named=True)
    ]
    healthy = [labels[home].healthy for home in homes]
    assert forest.shares == SHARES
    assert min(np.array(opinions)[~np.array(healthy)]) > max(np.array(opinions)[healthy])
