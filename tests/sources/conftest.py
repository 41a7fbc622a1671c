"""Runs of every source; among them those of a W&B server on loopback, and the clock by which it is asked."""

from functools import partial
from importlib.util import find_spec

import pytest
import wandb

from sentinel.sources.wandb import online as wandb_online
from sentinel.sources.wandb import server as wandb_server
from sentinel.testing.sources import break_largest_file
from tests.manual_clock import ManualClock
from tests.sources.reader import Reader
from tests.sources.runs import STEPS, held, largest, write
from tests.sources.wandb.backend import KEY, PROJECT, Backend, StoredRun, history
from tests.sources.writers import ONLINE, WRITERS, WandbOnlineWriter

collect_ignore = [] if find_spec("moto") else ["remote/test_directories.py"]
"""`make check` installs no servers of remote storage; `make test` does."""


def pytest_generate_tests(metafunc):
    if "source" in metafunc.fixturenames:
        metafunc.parametrize("source", held(*metafunc.fixturenames))


@pytest.fixture(scope="module")
def machine(tmp_path_factory):
    """A server that the client of this process talks to, and a home without any key."""
    with pytest.MonkeyPatch.context() as patch, Backend() as backend:
        for name, value in backend.environment(tmp_path_factory.mktemp("home")).items():
            patch.setenv(name, value)
        yield backend
        wandb.teardown()
        backend.shutdown()
    wandb_server._connect.cache_clear()


@pytest.fixture
def backend(machine):
    machine.runs = {}
    machine.failure = None
    machine.key = KEY
    machine.headers = {}
    machine.asked.clear()
    machine.told.clear()
    return machine


@pytest.fixture
def clock(monkeypatch):
    clock = ManualClock(1e6)
    monkeypatch.setattr(wandb_online, "Project", partial(wandb_server.Project, now=clock.now))
    wandb_online._project.cache_clear()
    yield clock
    wandb_online._project.cache_clear()


@pytest.fixture
def live(backend, clock):
    """A run of ten steps on the server, which are read."""
    backend.runs["r1"] = StoredRun(rows=history(0, 10), config={"optimizer": {"lr": 0.1}, "name": "x"})
    return Reader(PROJECT, clock).poll()


@pytest.fixture
def writer(source, request):
    return WandbOnlineWriter(request.getfixturevalue("backend")) if source == ONLINE else WRITERS[source]()


@pytest.fixture
def reader(source, request, tmp_path):
    if source == ONLINE:
        return Reader(PROJECT, request.getfixturevalue("clock"))
    return Reader(tmp_path)


@pytest.fixture
def logged(writer, tmp_path):
    """The directory of a run that logged STEPS."""
    return write(writer, tmp_path / "logged", STEPS)


@pytest.fixture
def torn(logged):
    """A run whose bytes may be cut anywhere."""
    return logged


@pytest.fixture
def broken(logged):
    """The largest file of a run, with some bytes broken."""
    return break_largest_file(logged)


@pytest.fixture
def unreadable(logged):
    """The largest file of a run; call it to have it unreadable."""
    path = largest(logged)

    def spoil():
        path.unlink()
        path.symlink_to("/proc/self/mem")
        return path

    return spoil
