"""Boosted trees for a table of random numbers: a classifier and a regressor, each with a validation set.

catboost 1.2.10. Each writes learn_error.tsv, test_error.tsv, time_left.tsv, catboost_training.json, and
TensorBoard event files in learn/ and test/.
"""

import socket
import sys
from pathlib import Path

socket.gethostname = lambda: "localhost"

import numpy as np  # noqa: E402
from catboost import CatBoostClassifier, CatBoostRegressor  # noqa: E402

SETTINGS = {"iterations": 60, "depth": 4, "learning_rate": 0.1, "random_seed": 0, "thread_count": 1}


def main(log):
    random = np.random.default_rng(0)
    table = random.random((600, 5))
    amount = table[:, 0] * 3 + table[:, 1] ** 2 + random.normal(0, 0.1, 600)
    kind = amount > 2
    classifier = CatBoostClassifier(custom_metric="Accuracy", train_dir=log / "classifier", **SETTINGS)
    regressor = CatBoostRegressor(custom_metric="MAE", train_dir=log / "regressor", **SETTINGS)
    for model, target in ((classifier, kind), (regressor, amount)):
        model.fit(table[:400], target[:400], eval_set=(table[400:], target[400:]), verbose=10)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
