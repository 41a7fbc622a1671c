from pathlib import Path

import pytest

from tests.tools.survival import check, survive

pytestmark = pytest.mark.long


@pytest.mark.parametrize("flaky", [False, True], ids=["steady", "flaky"])
def test_a_watch_that_is_killed_loses_nothing_and_says_nothing_twice(tmp_path: Path, flaky: bool) -> None:
    outcome = survive(tmp_path, kills=3, seed=7, flaky=flaky)
    check(outcome)
    assert outcome.replayed
    assert outcome.calm_before
    assert outcome.replayed_after
