"""What holds for all tests."""

import gc
import os
import subprocess
import time
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

# As the command line has both; the first counts only before something imports polars.
os.environ.setdefault("POLARS_MAX_THREADS", "1")
os.environ["TZ"] = "UTC"  # in which the tests write times without a zone
time.tzset()
gc.set_threshold(100_000, 20, 100)

pytest_plugins = ["pytester"]  # runs tests of the plugin

# How long an example takes is up to the machine.
settings.register_profile("sentinel", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("sentinel")


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Do not even import a module whose tests are all left out: some need libraries that load slowly."""
    if not config.option.markexpr or not collection_path.name.startswith("test_"):
        return None
    module = collection_path.read_text(encoding="utf-8")
    if config.option.markexpr == "long":
        return "pytest.mark.long" not in module or None
    words = config.option.markexpr.split(" and ")
    left_out = [word.removeprefix("not ") for word in words if word.startswith("not ")]
    return any(f"\npytestmark = pytest.mark.{mark}" in module for mark in left_out) or None


def pytest_collection_finish() -> None:
    """Leave out the modules of all tests when Python looks for unreachable objects."""
    gc.collect()
    gc.freeze()


LONGEST = "test_survival.py"


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Let the workers begin with what takes long, so that none is left with it when the others are done."""
    if hasattr(config, "workerinput"):
        items.sort(key=lambda item: (item.path.name != LONGEST, not item.get_closest_marker("slow")))


@pytest.fixture
def small_disk(tmp_path):
    """A directory on a file system of eight megabytes."""
    place = tmp_path / "disk"
    place.mkdir()
    mounted = ["mount", "-t", "tmpfs", "-o", "size=8m", "tmpfs", str(place)]
    if os.geteuid() or subprocess.run(mounted, capture_output=True, check=False).returncode:
        pytest.skip("a file system of a small size can be mounted by root alone")
    yield place
    subprocess.run(["umount", "-l", str(place)], check=True)
