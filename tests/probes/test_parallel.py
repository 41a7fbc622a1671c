"""Two ranks train to the same weights with probes and without, and ranks that drift apart are seen."""

import os
from datetime import timedelta

import pytest

torch = pytest.importorskip("torch", reason="probes are tested by `make test-probes`")

import torch.distributed as together  # noqa: E402
from torch.distributed.device_mesh import init_device_mesh  # noqa: E402
from torch.distributed.fsdp import fully_shard  # noqa: E402
from torch.nn.parallel import DistributedDataParallel  # noqa: E402

import sentinel  # noqa: E402

RANKS = 2
pytestmark = pytest.mark.slow


def net():
    return torch.nn.Sequential(torch.nn.Linear(12, 16), torch.nn.ReLU(), torch.nn.Linear(16, 4))


def weights(kind, every, steps=40):
    """What a rank's weights are after some steps, and the rows that its probe wrote."""
    torch.manual_seed(0)
    model, rows = net(), []
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
    parts = [one.detach() for one in used.parameters()]
    return [one.to_local().clone() if hasattr(one, "to_local") else one.clone() for one in parts], rows


def rank(number, place, kind):
    """The same training without probes and with them, in one rank."""
    os.environ["GLOO_SOCKET_IFNAME"] = "lo"
    torch.set_num_threads(1)
    together.init_process_group(
        "gloo",
        init_method=f"file://{place}",
        rank=number,
        world_size=RANKS,
        timeout=timedelta(seconds=60),
    )
    plain, none = weights(kind, None)
    probed, rows = weights(kind, 3)
    assert all(map(torch.equal, plain, probed))
    assert not none
    differing = [row["ranks/differing_weights"] for _, row in rows if "ranks/differing_weights" in row]
    assert bool(rows) is (number == 0)
    if number == 0 and kind != "sharded":
        assert differing
        assert max(differing) == (1 if kind == "apart" else 0)
    together.destroy_process_group()


@pytest.mark.parametrize("kind", ["replicated", "apart", "sharded"])
def test_a_training_on_two_ranks_is_the_same_with_probes_and_without(kind, tmp_path):
    torch.multiprocessing.spawn(rank, (str(tmp_path / "meet"), kind), nprocs=RANKS)
