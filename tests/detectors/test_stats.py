"""Statistics that detectors share."""

import subprocess
import sys

import numpy as np
import polars as pl
import pytest

from sentinel.detectors.schema import CONTINUES, INDEX, SERIES, STEP
from sentinel.detectors.stats import row_median, row_quantile, spearman, was_resumed


@pytest.mark.slow
@pytest.mark.parametrize("levels", [3, 1000])
def test_rank_correlation_shares_ranks_among_equal_values(levels):
    from scipy.stats import spearmanr  # it takes a second to import

    random = np.random.default_rng(0)
    one, other = random.integers(0, levels, (2, 20, 100)).astype(float)
    expected = [spearmanr(a, b).statistic for a, b in zip(one, other, strict=True)]
    np.testing.assert_allclose(spearman(one, other), expected)
    one[3, 5] = np.nan
    assert np.isnan(spearman(one, other)).nonzero()[0].tolist() == [3]


@pytest.mark.parametrize("columns", [1, 2, 3, 40])
def test_the_median_of_a_row_is_that_of_numpy(columns):
    random = np.random.default_rng(columns)
    values = random.normal(size=(50, columns))
    values[random.random(values.shape) < 0.02] = np.nan
    values[random.random(values.shape) < 0.02] = np.inf
    np.testing.assert_array_equal(row_median(values), np.median(values, axis=1))


@pytest.mark.slow
def test_ranks_come_without_scipy_which_takes_a_second_to_import():
    program = """if True:
        import sys
        import numpy as np
        from sentinel.detectors.stats import spearman
        spearman(np.eye(2), np.eye(2))
        assert "scipy" not in sys.modules"""
    subprocess.run([sys.executable, "-c", program], check=True)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:All-NaN slice")
@pytest.mark.parametrize("q", [0, 0.05, 0.5, 0.95, 1])
@pytest.mark.parametrize("columns", [1, 2, 3, 40])
def test_quantiles_of_rows_are_those_of_numpy(q, columns):
    random = np.random.default_rng(columns)
    values = random.normal(size=(500, columns))
    values[random.random(values.shape) < random.random((500, 1))] = np.nan
    np.testing.assert_allclose(row_quantile(values, q), np.nanquantile(values, q, axis=1), atol=1e-12)


@pytest.mark.parametrize(
    ("steps", "resumed"),
    [
        ([0, 10, 20, 30], False),
        ([20, 30, 40, 50], False),  # the first points were not logged
        ([201, 202, 203, 204], True),
        ([941, 1402, 2402, 3052], False),  # ends of episodes, once there are data to learn from
        ([13323, 13347, 13403, 13451], True),
        ([5], False),
        ([1, 1, 1, 1], False),  # batches that name their epoch alone
        ([7, 7, 7, 7], True),
    ],
)
def test_a_log_that_begins_late_by_its_own_steps_is_that_of_a_resumed_run(steps, resumed):
    rows = pl.DataFrame({SERIES: 0, INDEX: range(len(steps)), STEP: steps, CONTINUES: False})
    assert [*rows.select(was_resumed().fill_null(False)).to_series()] == [resumed] * len(steps)
    rows = rows.with_columns(pl.lit(value=True).alias(CONTINUES))
    assert rows.select(was_resumed().all()).item(), "a loss that had fallen is no start, whatever the steps"
