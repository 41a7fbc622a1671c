"""The buckets of a series, against numpy on all of its rows."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sentinel.series.buckets import Buckets
from tests.series.stored import again

pytestmark = pytest.mark.slow

PARTS = st.lists(st.sampled_from([0, 1, 1, 2, 30, 64, 65, 200]), max_size=20)


@given(
    parts=PARTS,
    lost=st.sampled_from([0.0, 0.1, 0.9, 1.0]),
    extremes=st.booleans(),
    late=st.integers(0, 20),
    uneven=st.sampled_from([0.0, 0.01, 1.0]),
    seed=st.integers(0, 99),
)
def test_a_bucket_tells_what_its_rows_say(parts, lost, extremes, late, uneven, seed):
    random = np.random.default_rng(seed)
    rows = sum(parts)
    value = random.normal(size=rows)
    step = 5 + 3 * np.arange(rows)
    beside = random.normal(size=rows)
    step[random.random(rows) < uneven] += 2**60
    value[random.random(rows) < lost] = np.nan
    coarse = Buckets(extremes=extremes)
    end = 0
    for number, size in enumerate(parts):
        part = slice(end, end + size)
        end = end + size
        columns = {5: beside[part]} if number >= late else {}
        beside[part] = beside[part] if columns else np.nan
        coarse.push(value[part], step[part], columns)
    coarse = again(coarse)
    assert coarse.rows == rows
    begins = np.arange(0, rows, coarse.width)
    np.testing.assert_array_equal(coarse.step, step[begins])
    for column in coarse.first.values():
        np.testing.assert_array_equal(column, beside[begins])
    finite = [bucket[np.isfinite(bucket)] for bucket in (value[at : at + coarse.width] for at in begins)]
    np.testing.assert_allclose(coarse.mean, [bucket.mean() if len(bucket) else np.nan for bucket in finite])
    if extremes:
        np.testing.assert_array_equal(
            coarse.low, [bucket.min() if len(bucket) else np.nan for bucket in finite]
        )
        np.testing.assert_array_equal(
            coarse.high, [bucket.max() if len(bucket) else np.nan for bucket in finite]
        )
