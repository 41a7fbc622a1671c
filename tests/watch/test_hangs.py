"""Hangs of four ranks: which of them the others wait for, and at which line it stands."""

import os
import re
import shutil
import socket
import subprocess
import sys
import threading
import time
from contextlib import contextmanager

import pytest

from sentinel.processes.stacks import py_spy
from sentinel.storage.store import Store
from tests.processes.running import until
from tests.processes.test_exits import needs_kernel
from tests.processes.test_flight_recorder import RECORDINGS
from tests.watch.test_watcher import House

RANKS = """
import ctypes, json, multiprocessing, os, signal, socket, sys, threading, time
fault, place, rank, port = sys.argv[1], sys.argv[2], int(os.environ["RANK"]), int(os.environ["MASTER_PORT"])
peers = socket.create_connection(("127.0.0.1", port))
file = open(place + "/run.jsonl", "a", buffering=1) if rank == 0 else None
secret = "canary-of-a-local"

class Data:
    def __getitem__(self, number):
        time.sleep(600)

def serve(queue):
    ctypes.CDLL(None).prctl(1, signal.SIGKILL)
    queue.put(Data()[0])

def load():
    queue = multiprocessing.Queue()
    for _ in range(2):
        multiprocessing.Process(target=serve, args=[queue], daemon=True).start()
    return queue.get()

def spin():
    while True: pass

def take_lock():
    lock = threading.Lock()
    lock.acquire()
    lock.acquire()

def read_shard():
    return open(place + "/shard").read()

def gather():
    return peers.recv(1)

def wait_for_device():
    libc = ctypes.PyDLL(None)
    if libc.vfork() == 0:
        libc.prctl(1, signal.SIGKILL)
        libc.pause()

def backward():
    peers.sendall(b"x")
    return peers.recv(1)

FAULTS = {
    "loader": load, "spin": spin, "lock": take_lock, "collective": gather, "device": wait_for_device,
    "stop": lambda: os.kill(os.getpid(), signal.SIGSTOP),
    "kill": lambda: os.kill(os.getpid(), signal.SIGKILL),
}
for step in range(1, 10000):
    if step % 20 == 0:
        if rank == 0: print("logged", flush=True); sys.stdin.readline()
        if step == 60 and fault == "fifo": read_shard()
        if step == 60 and rank == 2 and fault != "fifo": FAULTS[fault]()
    backward()
    if file: file.write(json.dumps({"step": step, "loss": 2 / step}) + "\\n")
"""
WORLD = 4
TOLD = ("stream-stall", "rank-died", "run-crashed", "run-preempted", "ended-or-stuck")

pytestmark = pytest.mark.long  # four processes and an examination each
needs_stacks = pytest.mark.skipif(py_spy() is None, reason="py-spy is not installed")


@contextmanager
def meeting():
    """A port at which the ranks meet: each waits until all have sent a byte."""
    with socket.create_server(("127.0.0.1", 0)) as server:

        def serve():
            peers = [server.accept()[0] for _ in range(WORLD)]
            try:
                while all(peer.recv(1) for peer in peers):
                    for peer in peers:
                        peer.send(b"x")
            except OSError:  # a rank is gone
                pass
            hold.wait()
            for peer in peers:
                peer.close()

        hold = threading.Event()
        thread = threading.Thread(target=serve)
        thread.start()
        try:
            yield server.getsockname()[1]
        finally:
            hold.set()
            thread.join()


@contextmanager
def hanging(place, fault):
    """Four ranks, of which one or all hang after some steps."""
    os.mkfifo(place / "shard")
    script = place.parent / "train.py"
    script.write_text(RANKS.lstrip())
    with meeting() as port:
        names = {
            "WORLD_SIZE": WORLD,
            "MASTER_ADDR": "127.0.0.1",
            "MASTER_PORT": port,
            "CANARY": "canary-of-env",
        }
        ranks = [
            subprocess.Popen(
                [sys.executable, script, fault, place, "canary-of-argv"],
                env={**os.environ, **{name: str(value) for name, value in names.items()}, "RANK": str(rank)},
                stdin=-1,
                stdout=-1,
            )
            for rank in range(WORLD)
        ]
        try:
            yield ranks
        finally:
            for rank in ranks:
                rank.kill()
            for rank in ranks:
                rank.communicate()


def stalled(house, fault, hours=0.4, **settings):
    """The incident about four ranks that hang, once the silence is long."""
    watcher = house.watch(**settings)
    house.look(watcher)
    with hanging(house.runs, fault) as ranks:
        for turn in range(3):
            assert ranks[0].stdout.readline() == b"logged\n"
            if turn < 2 or fault != "kill":  # of which the third look may tell
                assert house.look(watcher, hours=0.002, detector=TOLD) == []
            ranks[0].stdin.write(b"\n")
            ranks[0].stdin.flush()
        if fault == "kill":
            ranks[2].wait()
        else:
            house.clock.advance(3600 * hours)
        until(lambda: house.look(watcher, hours=0.003, detector=TOLD))
    with Store(house.state) as store:
        (incident,) = [one for one in store.incidents() if one.detector in TOLD]
    return incident


@pytest.fixture
def house(tmp_path):
    return House(tmp_path)


@needs_stacks
@pytest.mark.parametrize(
    ("fault", "says"),
    [
        (
            "loader",
            "Rank 2 waits for its data loader: both workers are at Data.__getitem__ (train.py:9), asleep. ",
        ),
        ("stop", "Rank 2 is stopped by a signal at <lambda> (train.py:47), and `kill -CONT "),
        ("spin", "Rank 2 is at spin (train.py:22), busy. "),
        ("lock", "Rank 2 is at take_lock (train.py:27), asleep. "),
        ("collective", "Rank 2 is at gather (train.py:33), asleep. "),
        ("device", "Rank 2 is waiting for a device"),
        (
            "fifo",
            "All 4 ranks on this host are at read_shard (train.py:30) and use no CPU: storage, probably; ",
        ),
    ],
)
def test_the_rank_that_hangs_is_named_with_its_line(house, fault, says):
    incident = stalled(house, fault)
    assert incident.detector == "stream-stall"
    assert says in incident.summary
    others = (
        "no single rank is at fault" if fault == "fifo" else "Ranks 0, 1 and 3 wait in backward (train.py:43)"
    )
    assert others in incident.summary
    assert "canary" not in repr(incident)


@needs_stacks
@pytest.mark.parametrize("devices", [False, True])
def test_what_is_known_of_the_devices_stands_beside_it_if_that_is_allowed(house, devices):
    for file in RECORDINGS.glob("comm_lib*"):
        shutil.copyfile(file, house.runs / file.name)
        os.utime(house.runs / file.name, (time.time() + 3600,) * 2)  # after the ranks have begun
    evidence = stalled(house, "collective", process={"devices": devices}).evidence
    assert ("rank 2 began collective 2, gloo:all_gather" in evidence.get("devices", "")) is devices


@needs_kernel
def test_a_rank_that_dies_while_the_others_live_is_told_at_once(house):
    incident = stalled(house, "kill")
    assert incident.detector == "rank-died"
    assert incident.summary.startswith("rank 2 of 4 died: SIGKILL, ")
    assert incident.summary.endswith(" s ago. Ranks 0, 1 and 3 still run and wait for it")


def test_without_stacks_it_is_said_what_would_show_the_line(house, monkeypatch):
    monkeypatch.setattr("sentinel.processes.stacks.py_spy", lambda: None)
    incident = stalled(house, "stop")
    assert re.search(
        r"Rank 2 is stopped by a signal, and `kill -CONT \d+` lets it go on\. Ranks 0, 1 and 3 are asleep",
        incident.summary,
    )
    assert not incident.causes, "no rank waits elsewhere than the others"
    assert "unknown because py-spy is not installed (" in incident.summary
