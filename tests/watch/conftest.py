"""What holds for all tests of a watch."""

import pytest

from sentinel.processes import finder

OF_PROCESSES = {"test_process_monitor", "test_hangs"}


@pytest.fixture(autouse=True)
def alone(request, monkeypatch):
    """Only tests about processes see those of this machine: no other run has one, and a look takes long."""
    if request.path.stem not in OF_PROCESSES:
        monkeypatch.setattr(finder, "processes", dict)
