"""What holds for all tests."""

import gc
import os

import pytest
from hypothesis import settings

os.environ.setdefault(
    "POLARS_MAX_THREADS", "1"
)  # as the command line has it, and before anything imports polars
gc.set_threshold(100_000, 20, 100)  # likewise

pytest_plugins = ["pytester"]  # runs tests of the plugin

settings.register_profile("sentinel", deadline=None)  # how long an example takes is up to the machine
settings.load_profile("sentinel")


def pytest_collection_finish() -> None:
    """Look at what the modules of all tests hold no more when Python looks for unreachable objects."""
    gc.collect()
    gc.freeze()


LONGEST = "test_survival.py"


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Let the workers begin with what takes long, so that none is left with it when the others are done."""
    if hasattr(config, "workerinput"):
        items.sort(key=lambda item: (item.path.name != LONGEST, not item.get_closest_marker("slow")))
