"""Shares of what several processes do together."""

import subprocess
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sentinel.common.shard import Shard, stable_hash


@pytest.mark.slow
@given(st.text(), st.integers(1, 20))
def test_a_name_is_of_exactly_one_share(name, count):
    assert sum(Shard(index, count).holds(name) for index in range(count)) == 1


@pytest.mark.slow
def test_a_name_is_of_the_same_share_in_every_process():
    program = "from sentinel.common.shard import stable_hash; print(stable_hash('runs/a'))"
    process = subprocess.run([sys.executable, "-c", program], check=True, capture_output=True, text=True)
    assert int(process.stdout) == stable_hash("runs/a")


@pytest.mark.parametrize("text", ["", "3", "3/3", "-1/3", "a/b", "1/2/3", "1.0/2"])
def test_another_text_is_no_share(text):
    with pytest.raises(ValueError, match=r"write I/N with I from 0 to N - 1, such as 3/64"):
        Shard.parse(text)
