"""Two ranks train to the same weights with probes and without, and ranks that drift apart are seen."""

import logging
import os

import pytest

torch = pytest.importorskip("torch", reason="probes are tested by `make test-probes`")

import torch.distributed as together  # noqa: E402
from torch.distributed.device_mesh import init_device_mesh  # noqa: E402
from torch.distributed.fsdp import fully_shard  # noqa: E402
from torch.nn.parallel import DistributedDataParallel  # noqa: E402

import sentinel  # noqa: E402
from tests.tools.ranks import on_ranks  # noqa: E402

RANKS = 2
pytestmark = pytest.mark.slow


def net():
    return torch.nn.Sequential(torch.nn.Linear(12, 16), torch.nn.ReLU(), torch.nn.Linear(16, 4))


def weights(kind, every, steps=40):
    """What a rank's weights are after some steps, and the rows that its probe wrote."""
    torch.manual_seed(0)
    model = net()
    rows = []
    if kind == "sharded":
        used = fully_shard(model, mesh=init_device_mesh("cpu", (RANKS,)))
    else:
        used = DistributedDataParallel(model)
    torch.manual_seed(1 + together.get_rank())
    update = torch.optim.AdamW(used.parameters(), lr=1e-2)
    probe = sentinel.probe(used, update, to=lambda *row: rows.append(row), every=every or 1, sets="cheap")
    if every is None:
        probe.close()
    for _ in range(steps):
        batch = torch.randn(8, 12), torch.randint(0, 4, (8,))
        loss = torch.nn.functional.cross_entropy((model if kind == "apart" else used)(batch[0]), batch[1])
        update.zero_grad()
        loss.backward()
        update.step()
        together.barrier()  # both ranks have told of the measurement before
        probe.step(batch=batch, loss=loss)
    probe.close()
    parts = [parameter.detach() for parameter in used.parameters()]
    local = [part.to_local() if hasattr(part, "to_local") else part for part in parts]
    return [part.clone() for part in local], rows


def train_twice(rank, kind):
    """The same training without probes and with them, in one rank."""
    plain, none = weights(kind, None)
    probed, rows = weights(kind, 3)
    assert all(map(torch.equal, plain, probed))
    assert not none
    differing = [row["ranks/differing_weights"] for _, row in rows if "ranks/differing_weights" in row]
    assert bool(rows) is (rank == 0)
    if rank == 0 and kind != "sharded":
        assert differing
        assert max(differing) == (1 if kind == "apart" else 0)


@pytest.mark.parametrize("kind", ["replicated", "apart", "sharded"])
def test_a_training_on_two_ranks_is_the_same_with_probes_and_without(kind):
    on_ranks(RANKS, train_twice, kind)


def leave_early(rank):
    """The last rank ends its process without a word after a few steps, and the first one goes on alone."""
    model = net()
    rows = []
    update = torch.optim.SGD(model.parameters(), lr=0.1)
    together.barrier()
    probe = sentinel.probe(model, update, to=lambda *row: rows.append(row), every=1, sets="ranks")
    for step in range(30):
        if rank and step == 5:
            os._exit(0)
        probe.step(batch=torch.randn(8, 12))
    assert probe.sets == ["ranks"]
    os._exit(0)  # to leave the group would wait for the other one


def test_a_rank_that_leaves_holds_nobody():
    on_ranks(RANKS, leave_early)


def meet_elsewhere(rank):
    """Ranks that found each other in another way."""
    del os.environ["MASTER_ADDR"]
    lines = []
    handler = logging.Handler()
    handler.emit = lambda record: lines.append(record.getMessage())
    logging.getLogger("sentinel").addHandler(handler)
    model = net()
    sentinel.probe(model, torch.optim.SGD(model.parameters(), lr=0.1), to=print, sets="ranks")
    assert lines == ["the probe ranks is off: the ranks did not meet at MASTER_ADDR and MASTER_PORT"]


def test_ranks_that_met_elsewhere_are_not_compared():
    on_ranks(RANKS, meet_elsewhere)
