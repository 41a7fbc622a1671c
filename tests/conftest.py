"""What holds for all tests."""

import pytest
from hypothesis import settings

pytest_plugins = ["pytester"]  # runs tests of the plugin

settings.register_profile("sentinel", deadline=None)  # how long an example takes is up to the machine
settings.load_profile("sentinel")


LONGEST = "test_survival.py"


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Let the workers begin with what takes long, so that none is left with it when the others are done."""
    if hasattr(config, "workerinput"):
        items.sort(key=lambda item: (item.path.name != LONGEST, not item.get_closest_marker("slow")))
