"""The ranks of a training, by the environment of their processes."""

import os
import signal
import subprocess
import sys
from contextlib import ExitStack, contextmanager

import pytest

from sentinel.processes.ranks import Roster, Team
from sentinel.processes.table import process, processes, rank_keys
from tests.processes.running import running, until
from tests.processes.test_exits import needs_kernel

pytestmark = pytest.mark.slow

WAITS = """
import os, subprocess, sys
if "worker" in sys.argv:
    subprocess.Popen([sys.executable, "-c", "import sys; sys.stdin.read()"], stdin=0)
print("ready", flush=True)
end = sys.stdin.readline().strip()
sys.exit(int(end or 0))
"""


@contextmanager
def ranks(names, *words):
    """Processes with these variables, which end with the status that they are sent."""
    with ExitStack() as stack:
        plain = {key: value for key, value in os.environ.items() if "RANK" not in key}
        yield [stack.enter_context(running(WAITS, *words, env={**plain, **each})) for each in names]


def torchrun(world, port, **more):
    return [
        {"RANK": str(n), "WORLD_SIZE": str(world), "MASTER_ADDR": "h", "MASTER_PORT": str(port), **more}
        for n in range(world)
    ]


def found(one):
    return [(rank.number, rank.process.pid) for rank in Roster(processes()).ranks_of(process(one.pid))]


def test_the_ranks_of_one_launch_are_found_and_what_they_started_is_none():
    with ranks(torchrun(3, 5001), "worker") as mine, ranks(torchrun(3, 5002)) as others:
        expected = [(number, one.pid) for number, one in enumerate(mine)]
        assert all(found(one) == expected for one in mine)
        assert found(others[0])[0] == (0, others[0].pid)


def test_ranks_that_an_earlier_launch_left_at_the_same_address_are_others():
    with ranks(torchrun(2, 5005)) as earlier, ranks(torchrun(2, 5005)) as mine:
        pids = {one.pid for one in earlier}
        table = {pid: one._replace(parent=1) if pid in pids else one for pid, one in processes().items()}
        members = Roster(table).ranks_of(table[mine[0].pid])
        assert [rank.process.pid for rank in members] == [one.pid for one in mine]


def test_slurm_and_mpi_number_their_ranks_in_their_own_words():
    slurm = [{"SLURM_PROCID": str(n), "SLURM_NTASKS": "2", "SLURM_JOB_ID": "77"} for n in range(2)]
    mpi = [{"OMPI_COMM_WORLD_RANK": str(n), "OMPI_COMM_WORLD_SIZE": "2"} for n in range(2)]
    with ranks(slurm) as one, ranks(mpi) as other:
        assert found(one[1]) == [(number, rank.pid) for number, rank in enumerate(one)]
        assert found(other[0]) == [(number, rank.pid) for number, rank in enumerate(other)]


def test_a_process_that_trains_alone_has_no_ranks():
    with ranks([{"RANK": "0", "WORLD_SIZE": "1"}, {}]) as both:
        assert [found(one) for one in both] == [[], []]


def test_spawned_processes_are_counted_in_the_order_of_their_start(tmp_path):
    script = tmp_path / "spawn.py"
    script.write_text(
        "import multiprocessing, sys\n"
        "def train(): sys.stdout.write('ready\\n'); sys.stdout.flush(); multiprocessing.Event().wait(600)\n"
        "if __name__ == '__main__':\n"
        "    context = multiprocessing.get_context('spawn')\n"
        "    both = [context.Process(target=train, daemon=True) for _ in range(2)]\n"
        "    for one in both: one.start()\n"
        "    print(*(one.pid for one in both), flush=True)\n"
        "    sys.stdin.read()\n"
        "    for one in both: one.kill()\n"
    )
    with subprocess.Popen([sys.executable, script], stdin=-1, stdout=-1, text=True) as parent:
        pids = next(line for line in parent.stdout if "ready" not in line).split()
        first = until(lambda: Roster(processes()).ranks_of(process(int(pids[1]))))
        assert [(rank.process.pid, rank.title) for rank in first] == [
            (int(pids[0]), "the 1st of 2 spawned"),
            (int(pids[1]), "the 2nd of 2 spawned"),
        ]
        parent.stdin.close()


@needs_kernel
def test_a_rank_that_fails_is_told_while_others_live_and_one_that_ends_is_not():
    with ranks(torchrun(4, 5003)) as mine:
        team = Team()
        team.meet(Roster(processes()).ranks_of(process(mine[0].pid)))
        assert not team.refresh(0.0)
        for one, end in zip(mine[:2], (b"0\n", b"7\n"), strict=True):
            one.stdin.write(end)
            one.stdin.flush()
            one.wait()
            assert until(lambda: team.refresh(2.0))
            if end == b"0\n":
                assert team.news(2.0) == "", "it is done, and the others will be soon"
        assert team.news(2.0).startswith("rank 1 of 4 died: exit status 7, ")
        assert team.news(2.0).endswith(". Ranks 2 and 3 still run and wait for it")
        mine[2].send_signal(signal.SIGTERM)
        mine[2].wait()
        assert until(lambda: team.refresh(4.0))
        assert team.culprit().rank.number == 1, "who was ended from outside is not to blame"
        assert team.news(4.0).endswith(". Rank 3 still runs and waits for it")


@needs_kernel
def test_what_a_dead_rank_leaves_behind_does_not_replace_it():
    """Another process with its number counts only if the same launcher started it."""
    with ranks(torchrun(2, 5004)) as mine:
        team = Team()
        roster = Roster(processes())
        first = roster.ranks_of(process(mine[0].pid))
        team.meet(first)
        mine[1].kill()
        mine[1].wait()
        assert until(lambda: team.refresh(1.0))
        later = first[1]._replace(process=process(mine[0].pid)._replace(started=10**9, parent=1))
        team.meet([later])
        assert team.news(1.0)


def test_nothing_else_of_an_environment_is_learned():
    with ranks([{"RANK": "1", "WORLD_SIZE": "2", "WANDB_API_KEY": "canary"}]) as (one,):
        assert rank_keys(one.pid) == {"RANK": "1", "WORLD_SIZE": "2"}
