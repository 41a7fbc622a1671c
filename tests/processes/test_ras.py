"""What NCCL's RAS threads say, answered on a loopback socket in the form that NCCL documents."""

import os
import socket
import threading
from contextlib import contextmanager

import orjson
import pytest

from sentinel.processes import ras
from sentinel.processes.ras import ras_problems

HERE = "10.0.0.1"
THERE = "10.0.0.2"
HELLO = b"SERVER PROTOCOL 2\nOK\nOK\n"


@contextmanager
def answering(content, monkeypatch, *, ends=True):
    """A port that gives this answer once it was asked; it has the commands that it got."""
    got = []
    over = threading.Event()
    with socket.create_server(("127.0.0.1", 0)) as server:
        monkeypatch.setattr(ras, "_RAS_ADDRESS", server.getsockname())

        def serve():
            peer, _ = server.accept()
            with peer, peer.makefile("rb") as commands:
                while not got or got[-1] != "STATUS":
                    got.append(commands.readline().decode().strip())
                peer.sendall(content)
                if not ends:
                    over.wait()

        thread = threading.Thread(target=serve)
        thread.start()
        yield got
        over.set()
        thread.join()


def peer(rank, pid, host=HERE, *, reduced=6650, error=0):
    return {
        "rank": rank,
        "host": host,
        "pid": pid,
        "cuda_dev": rank,
        "nvml_dev": rank,
        "status": {
            "init_state": 0,
            "async_error": error,
            "finalize_called": False,
            "destroy_flag": False,
            "abort_flag": False,
        },
        "collective_counts": {"Broadcast": 2, "AllReduce": reduced},
    }


def missing(rank, pid, host=HERE, *, dead=False):
    state = {"unresponsive": True, "considered_dead": dead}
    return {"rank": rank, "host": host, "pid": pid, "cuda_dev": 0, "nvml_dev": 0, "status": state}


def answer(*communicators):
    answers = [
        {
            "hash": "0xae94423cfbb2ef4a",
            "secondary_hash": "0xb7e7187447156001:0xb8242ed28a71381e",
            "size": len(ranks) + len(lost),
            "ranks_count": len(ranks),
            "missing_ranks_count": len(lost),
            "ranks": ranks,
            "missing_ranks": lost,
        }
        for ranks, lost in communicators
    ]
    head = {"nccl_version": "2.30.7", "cuda_driver_version": 13000, "timestamp": "2026-11-24 13:06:53"}
    tail = {"ras": {"collection_time_sec": 0.0, "timeouts_count": 0}}
    return orjson.dumps(head | {"communicators_count": len(answers), "communicators": answers} | tail)


def said(status, monkeypatch, pids=(11, 12)):
    with answering(HELLO + status, monkeypatch):
        return ras_problems(pids)


def test_nobody_answers(monkeypatch):
    with socket.create_server(("127.0.0.1", 0)) as server:
        monkeypatch.setattr(ras, "_RAS_ADDRESS", server.getsockname())
    assert ras_problems([os.getpid()]) == ""


def test_only_the_status_is_asked_for(monkeypatch):
    with answering(HELLO + answer(([peer(0, 11), peer(1, 12)], [])), monkeypatch) as got:
        assert ras_problems([11, 12]) == "", "all is well"
    assert got == ["CLIENT PROTOCOL 2", "SET FORMAT json", "TIMEOUT 2", "STATUS"]


def test_a_rank_on_another_machine_that_does_not_answer(monkeypatch):
    status = answer(([peer(0, 11), peer(1, 12)], [missing(2, 11, THERE)]))
    assert said(status, monkeypatch) == f"NCCL: rank 2 of 3 (process 11 on {THERE}) does not answer"


def test_a_rank_that_launched_less(monkeypatch):
    ranks = [peer(0, 11), peer(1, 12, reduced=6649), peer(2, 13)]
    words = "launched 6,649 AllReduce, most others 6,650"
    assert said(answer((ranks, [])), monkeypatch) == f"NCCL: rank 1 of 3 (process 12 on {HERE}) {words}"


def test_a_rank_that_failed_and_one_that_is_dead(monkeypatch):
    status = answer(([peer(0, 11, error=6), peer(1, 12, error=7)], [missing(2, 13, dead=True)]))
    assert said(status, monkeypatch) == (
        f"NCCL: rank 2 of 3 (process 13 on {HERE}) is considered dead; "
        f"rank 0 of 3 (process 11 on {HERE}) has failed: remote error"
    )


def test_a_process_is_told_of_once_by_its_largest_communicator(monkeypatch):
    pair = ([peer(0, 12)], [missing(1, 13)])
    whole = ([peer(0, 11), peer(1, 12)], [missing(2, 13)])
    words = f"NCCL: rank 2 of 3 (process 13 on {HERE}) does not answer"
    assert said(answer(pair, whole), monkeypatch) == words


def test_many_are_counted(monkeypatch):
    lost = [missing(rank, rank) for rank in range(2, 40)]
    assert said(answer(([peer(0, 11), peer(1, 12)], lost)), monkeypatch).endswith("and 34 more")


@pytest.mark.parametrize(
    "ranks",
    [[peer(0, 21), peer(1, 22)], [peer(0, 11), peer(1, 22)], [peer(0, 11), peer(1, 12, THERE)]],
    ids=["other processes", "only one is ours", "numbers of two machines"],
)
def test_an_answer_for_another_job_does_not_count(monkeypatch, ranks):
    assert said(answer((ranks, [missing(2, 23)])), monkeypatch) == ""


def test_what_cannot_be_read_is_no_answer(monkeypatch):
    status = answer(([peer(0, 11), peer(1, 12)], [missing(2, 13)]))
    # as NCCL 2.28.9 prints it
    without_a_comma = status.replace(b'"nvml_dev":0,"status":{"unr', b'"nvml_dev":0"status":{"unr')
    assert without_a_comma != status
    for broken in (
        without_a_comma,
        status[:-5],
        b"",
        b"Job summary\n",
        b'{"communicators":[],"x":' + b"[" * 100_000,
        b'{"\xff',
    ):
        assert said(broken, monkeypatch) == ""


@pytest.mark.slow
def test_one_that_never_ends_costs_its_limit(monkeypatch):
    monkeypatch.setattr(ras, "_MAX_RAS_SECONDS", 0.2)
    with answering(HELLO + b"{", monkeypatch, ends=False):
        assert ras_problems([11]) == ""


def test_names_are_cleaned(monkeypatch):
    lost = [missing(2, 13, "evil\x1b[2J\n" * 50)]
    text = said(answer(([peer(0, 11), peer(1, 12)], lost)), monkeypatch)
    assert text.isprintable()
    assert len(text) < 200
