"""Chunks, the points that every source gives."""

import numpy as np
import pytest

from sentinel.sources.base import order_by_tag


@pytest.mark.parametrize(
    ("tags", "order"),
    [([], []), ([2, 0, 2, 1, 0], [1, 4, 3, 0, 2]), ([65_536, 1, 70_000, 1, 65_536], [1, 3, 0, 4, 2])],
)
def test_points_come_together_by_tag_in_their_order(tags, order):
    assert order_by_tag(np.array(tags, np.uint32)).tolist() == order
