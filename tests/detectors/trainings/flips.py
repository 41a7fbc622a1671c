"""Two ranks that train copies of one model. Sick: one rank computes wrongly once, when a bit flips.

python -m tests.detectors.trainings.flips sick > tests/detectors/trainings/flips-sick.jsonl
"""

import sys
from tempfile import TemporaryDirectory

import torch
from torch import distributed, nn
from torch.multiprocessing import spawn

from tests.detectors.trainings.make import log

RANKS = 2
STEPS = 200
WRONG = 150
EXPONENT = 1 << 29  # a bit of a float32's exponent: a number below 2 becomes 2^64 times as large or as small


def rank(number: int, meeting: str, healthy: bool) -> None:
    """One rank, which averages its gradients with the other, and logs what it had before."""
    distributed.init_process_group("gloo", f"file://{meeting}", rank=number, world_size=RANKS)
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(32, 64), nn.GELU(), nn.Linear(64, 10))
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    centres = torch.randn(10, 32)
    torch.manual_seed(number + 1)
    for step in range(1, STEPS + 1):
        labels = torch.randint(10, (32,))
        hidden = model[:2](centres[labels] + 2 * torch.randn(32, 32))
        if number == 1 and step == WRONG and not healthy:
            hidden.data.view(torch.int32)[0, 0] ^= EXPONENT
        loss = nn.functional.cross_entropy(model[2](hidden), labels)
        loss.backward()
        own = nn.utils.get_total_norm([parameter.grad for parameter in model.parameters()])
        norms = [torch.zeros(()) for _ in range(RANKS)]
        distributed.all_gather(norms, own)
        for one in (loss.data, *(parameter.grad for parameter in model.parameters())):
            distributed.all_reduce(one)
            one /= RANKS
        total = nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad()
        if number == 0:
            log(step, loss=loss, grad_norm=total, rank0_grad_norm=norms[0], rank1_grad_norm=norms[1])
    distributed.destroy_process_group()


if __name__ == "__main__":
    with TemporaryDirectory() as directory:
        spawn(rank, (f"{directory}/meeting", sys.argv[1] == "healthy"), nprocs=RANKS)
