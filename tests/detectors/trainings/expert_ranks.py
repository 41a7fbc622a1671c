"""Two ranks with experts of their own and equal dense layers. Sick: the norm counts dense gradients twice.

python -m tests.detectors.trainings.expert_ranks sick > tests/detectors/trainings/mixed-norm-sick.jsonl
"""

import sys
from tempfile import TemporaryDirectory

import torch
from torch import distributed, nn
from torch.multiprocessing import spawn

from tests.detectors.trainings.make import log

RANKS = 2
STEPS = 100
WIDTH = 64
CLASSES = 10


def summed(value: torch.Tensor) -> torch.Tensor:
    """The sum over the ranks."""
    distributed.all_reduce(value)
    return value


def squares(layer: nn.Module) -> torch.Tensor:
    return nn.utils.get_total_norm([parameter.grad for parameter in layer.parameters()]) ** 2


def rank(number: int, meeting: str, healthy: bool) -> None:
    """One rank. Its expert sees its own tokens; the dense layers average their gradients."""
    distributed.init_process_group("gloo", f"file://{meeting}", rank=number, world_size=RANKS)
    torch.manual_seed(0)
    dense = nn.ModuleList([nn.Linear(32, WIDTH), nn.Linear(WIDTH, CLASSES)])
    centres = torch.randn(CLASSES, 32)
    torch.manual_seed(number + 1)
    expert = nn.Linear(WIDTH, WIDTH)
    optimizer = torch.optim.AdamW([*dense.parameters(), *expert.parameters()], lr=1e-3)
    for step in range(1, STEPS + 1):
        labels = torch.randint(CLASSES, (32,))
        hidden = dense[0](centres[labels] + torch.randn(32, 32)).relu()
        loss = nn.functional.cross_entropy(dense[1](hidden + expert(hidden).relu()), labels)
        loss.backward()
        for parameter in dense.parameters():
            parameter.grad = summed(parameter.grad) / RANKS
        of_experts = summed(squares(expert))
        of_dense = squares(dense)
        total = of_experts + (of_dense if healthy else RANKS * of_dense)
        optimizer.step()
        optimizer.zero_grad()
        mean = summed(loss.detach()) / RANKS
        if number == 0:
            parts = {"grad_norm/experts": of_experts.sqrt(), "grad_norm/dense": of_dense.sqrt()}
            log(step, loss=mean, grad_norm=total.sqrt(), **parts)
    distributed.destroy_process_group()


if __name__ == "__main__":
    with TemporaryDirectory() as directory:
        spawn(rank, (f"{directory}/meeting", sys.argv[1] == "healthy"), nprocs=RANKS)
