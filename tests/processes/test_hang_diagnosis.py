"""The diagnosis of ranks that hang: what stands above in the order explains what stands below."""

import pytest

from sentinel.processes.hang_diagnosis import ProcessSample, RankSample, diagnose
from sentinel.processes.ranks import Rank
from sentinel.processes.stacks import Frame, Stack
from sentinel.processes.table import Process

BACKWARD = Frame("backward", "train.py", 34, ours=True)
WAITS = Frame("wait", "distributed.py", 7, ours=False)
NEXT = Frame("_try_get_data", "dataloader.py", 1130, ours=False)
LOAD = Frame("load", "train.py", 40, ours=True)
ITEM = Frame("Data.__getitem__", "train.py", 13, ours=True)


def look(*frames, state="S", busy=0.0, waits_in=""):
    return ProcessSample(
        state, waits_in, busy, Stack(frames) if frames else Stack(unknown="ptrace_scope is 1")
    )


def seen(*looks, workers=(), world=None):
    """Ranks of which each was seen so; the workers are the last one's."""
    ranks = [
        Rank(Process(100 + number, 1, 1, 0, "python", "S"), number, world or len(looks))
        for number in range(len(looks))
    ]
    each = [*([()] * (len(looks) - 1)), workers]
    return [RankSample(*one) for one in zip(ranks, looks, each, strict=True)]


WAITING = look(WAITS, BACKWARD)
STARVED = look(NEXT, LOAD)


@pytest.mark.parametrize(
    ("ranks", "kind", "sentence"),
    [
        (
            seen(WAITING, WAITING, look(BACKWARD, state="T")),
            "stopped",
            "Rank 2 is stopped by a signal at backward (train.py:34), and `kill -CONT 102` lets it go on. "
            "Ranks 0 and 1 wait in backward (train.py:34)",
        ),
        (
            seen(look(LOAD, state="T"), WAITING, look(BACKWARD, state="D", waits_in="nfs_wait")),
            "stopped",
            "Rank 0 is stopped by a signal at load (train.py:40), and `kill -CONT 100` lets it go on. "
            "Ranks 1 and 2 wait in backward (train.py:34)",
        ),
        (
            seen(WAITING, WAITING, look(LOAD, state="D", waits_in="nfs_wait")),
            "device",
            "Rank 2 is waiting for a device in nfs_wait at load (train.py:40). "
            "Ranks 0 and 1 wait in backward (train.py:34)",
        ),
        (
            seen(WAITING, WAITING, STARVED, workers=[look(ITEM), look(ITEM)]),
            "loader",
            "Rank 2 waits for its data loader: both workers are at Data.__getitem__ (train.py:13), asleep. "
            "Ranks 0 and 1 wait in backward (train.py:34)",
        ),
        (
            seen(WAITING, WAITING, STARVED, workers=[look(NEXT), look(ITEM, busy=0.9), look(NEXT)]),
            "loader",
            "Rank 2 waits for its data loader: 1 worker of 3 is at Data.__getitem__ (train.py:13), busy. "
            "Ranks 0 and 1 wait in backward (train.py:34)",
        ),
        (
            seen(WAITING, look(LOAD, busy=1.0), WAITING),
            "apart",
            "Rank 1 is at load (train.py:40), busy. Ranks 0 and 2 wait in backward (train.py:34)",
        ),
        (
            seen(look(LOAD), look(ITEM), WAITING, WAITING, WAITING),
            "apart",
            "Ranks 0 and 1 are at Data.__getitem__ (train.py:13) and load (train.py:40), asleep. "
            "Ranks 2, 3 and 4 wait in backward (train.py:34)",
        ),
        (
            seen(look(LOAD), WAITING),
            "unlike",
            "Rank 0 is at load (train.py:40), asleep; Rank 1 is at backward (train.py:34), asleep",
        ),
        (
            seen(look(LOAD), look(LOAD)),
            "alike",
            "Both ranks on this host are at load (train.py:40) and use no CPU: storage, probably; "
            "no single rank is at fault",
        ),
        (
            seen(WAITING, WAITING, world=8),
            "alike",
            "Both ranks on this host are at backward (train.py:34) and use no CPU: a rank on another host or "
            "storage, probably; no single rank is at fault",
        ),
        (
            seen(WAITING, WAITING, look(waits_in="futex_wait")),
            "apart",
            "Rank 2 is asleep in futex_wait; its line is unknown because ptrace_scope is 1. "
            "Ranks 0 and 1 wait in backward (train.py:34)",
        ),
        (seen(look(LOAD, busy=1.0)), "alike", "Its process is at load (train.py:40) and computes"),
        (
            seen(look(waits_in="futex_wait")),
            "alike",
            "Its process is asleep in futex_wait; its line is unknown because ptrace_scope is 1",
        ),
        (
            seen(*[look(waits_in="futex_wait")] * 3, look(waits_in="do_poll")),
            "alike",
            "Rank 3 is the odd one, asleep in do_poll; Ranks 0, 1 and 2 are asleep in futex_wait. "
            "Their lines are unknown because ptrace_scope is 1",
        ),
    ],
)
def test_the_verdict_names_who_the_others_wait_for(ranks, kind, sentence):
    diagnosis = diagnose(ranks)
    assert (diagnosis.kind, diagnosis.sentence) == (kind, sentence)


def test_a_rank_that_is_gone_outranks_every_other_sign():
    diagnosis = diagnose(seen(look(LOAD, state="T"), WAITING), death="Rank 2 of 3 died: SIGKILL, 2.0 s ago")
    assert diagnosis.kind == "gone"
    assert diagnosis.sentence.startswith(
        "Rank 2 of 3 died: SIGKILL, 2.0 s ago. Rank 0 waits in load (train.py:40)"
    )


def test_the_frames_of_all_ranks_and_workers_are_kept():
    diagnosis = diagnose(seen(WAITING, STARVED, workers=[look(ITEM)]))
    assert diagnosis.frames == (
        "Rank 0: wait (distributed.py:7) < backward (train.py:34); "
        "Rank 1: _try_get_data (dataloader.py:1130) < load (train.py:40); "
        "Rank 1, worker: Data.__getitem__ (train.py:13)"
    )
