"""Lets a test choose the detectors that there are."""

from collections.abc import Mapping

import pytest

import sentinel.config.file
from sentinel.config.file import Config
from sentinel.detectors.api import Declaration


def choose_detectors(monkeypatch: pytest.MonkeyPatch, chosen: Mapping[str, Declaration]) -> None:
    """Until the test ends, configurations know these detectors only."""
    Config()  # makes the schema of all configurations, which must hold every detector after this test, too
    monkeypatch.setattr(sentinel.config.file, "all_detectors", lambda: chosen)
