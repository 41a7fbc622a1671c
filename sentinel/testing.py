"""A pytest plugin: the test of a training asks whether its run is healthy.

    def test_a_short_training_is_healthy(assert_healthy, tmp_path):
        train(steps=200, log_dir=tmp_path)
        assert_healthy(tmp_path)

pytest finds the plugin by itself where sentinel is installed.
"""

from collections.abc import Callable
from os import PathLike
from typing import Any

import pytest

import sentinel
from sentinel.detectors.severity import SeverityName


def assert_healthy(
    *paths: str | PathLike[str], below: SeverityName = "warning", **options: Any
) -> sentinel.Report:
    """Judge finished logs and return the report, if no incident is as severe as ``below``.

    ``options`` are those of `sentinel.replay`. Raises AssertionError with the report, as `sentinel replay`
    prints it, if there is such an incident or a run could not be read or judged to its end. Raises
    SentinelError if there is nothing to judge. What no detector can judge counts as healthy:
    ``report.coverage`` says of how many detectors the report speaks.
    """
    __tracebackhide__ = True
    report = sentinel.replay(*paths, **options)
    if not report.is_healthy(below):
        raise AssertionError(f"{report.verdict}\n\n{report}")
    return report


@pytest.fixture(name="assert_healthy")
def _assert_healthy() -> Callable[..., sentinel.Report]:
    """`sentinel.testing.assert_healthy`."""
    return assert_healthy
