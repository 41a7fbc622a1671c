"""Statistics that detectors share."""

import numpy as np
import pytest
from scipy.stats import spearmanr

from detectors.stats import spearman


@pytest.mark.parametrize("levels", [3, 1000])
def test_rank_correlation_shares_ranks_among_equal_values(levels):
    random = np.random.default_rng(0)
    one, other = random.integers(0, levels, (2, 20, 100)).astype(float)
    expected = [spearmanr(a, b).statistic for a, b in zip(one, other, strict=True)]
    np.testing.assert_allclose(spearman(one, other), expected)
