"""The unit behind a number that is no metric."""

import pytest

from sentinel.sources.readers.words import unit_of_other


@pytest.mark.parametrize("unit", ["s/it", "it/s", "ms", "s", "samples/s", "ms/batch"])
def test_a_unit_is_read_whole(unit):
    assert unit_of_other(f"{unit} loss") == unit
