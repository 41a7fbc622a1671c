"""When a run under watch is committed."""

import pytest

from sentinel.watch.watched import WatchedRun


@pytest.mark.parametrize(("runs", "seconds"), [(1, 30), (900, 30), (9000, 300)])
def test_many_runs_are_committed_more_seldom(runs, seconds):
    one = WatchedRun(run_pipeline=None, arrived_at=0.0, committed_at=100.0, uncommitted=1)
    assert not one.overdue(100 + seconds - 0.1, runs)
    assert one.overdue(100 + seconds, runs)


def test_a_run_without_news_is_not_committed():
    assert not WatchedRun(run_pipeline=None, arrived_at=0.0, committed_at=0.0).overdue(1e9, 1)
