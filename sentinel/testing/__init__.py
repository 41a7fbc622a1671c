"""A pytest plugin: the test of a training asks whether its run is healthy.

    def test_a_short_training_is_healthy(assert_healthy, tmp_path):
        train(steps=200, log_dir=tmp_path)
        assert_healthy(tmp_path)

pytest finds the plugin by itself where sentinel is installed.

A package that brings detectors, sources or sinks of its own tests them with the classes of this package:

    from sentinel.testing import DetectorConformance

    class TestMyDetector(DetectorConformance):
        detector = my_detector
        golden = Path(__file__).with_name("my_detector.md")

They are imported when they are used, because pytest loads this module wherever sentinel is installed.
"""

from collections.abc import Callable
from importlib import import_module
from os import PathLike
from typing import TYPE_CHECKING, Any

import pytest

import sentinel
from sentinel.detectors.severity import SeverityName

if TYPE_CHECKING:
    from sentinel.testing.detectors import DetectorConformance
    from sentinel.testing.sinks import SinkConformance
    from sentinel.testing.sources import SourceConformance

_SUITES = {
    "DetectorConformance": "sentinel.testing.detectors",
    "SinkConformance": "sentinel.testing.sinks",
    "SourceConformance": "sentinel.testing.sources",
}

__all__ = ["DetectorConformance", "SinkConformance", "SourceConformance", "assert_healthy"]

pytest.register_assert_rewrite(*_SUITES.values())


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
    """Return `sentinel.testing.assert_healthy`."""
    return assert_healthy


def __getattr__(name: str) -> object:
    if name not in _SUITES:
        raise AttributeError(f"module 'sentinel.testing' has no attribute {name!r}")
    suite: object = getattr(import_module(_SUITES[name]), name)
    return suite
