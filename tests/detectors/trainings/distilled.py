"""A student of a teacher at a temperature of 4. Sick: the soft loss lacks the square of the temperature.

python -m tests.detectors.trainings.distilled sick > tests/detectors/trainings/distilled-sick.jsonl
"""

import sys

import torch
from torch import nn
from torch.nn.functional import cross_entropy, kl_div

from tests.detectors.trainings.make import log

CLASSES = 20
INPUTS = 32
TEMPERATURE = 4.0
NOISE = 1.2


def model(width: int) -> nn.Sequential:
    return nn.Sequential(nn.Linear(INPUTS, width), nn.ReLU(), nn.Linear(width, CLASSES))


def batch(centres: torch.Tensor, size: int) -> tuple[torch.Tensor, torch.Tensor]:
    labels = torch.randint(CLASSES, (size,))
    return centres[labels] + NOISE * torch.randn(size, INPUTS), labels


def taught(centres: torch.Tensor) -> nn.Module:
    """A teacher that has seen plenty of data."""
    teacher = model(256)
    optimizer = torch.optim.AdamW(teacher.parameters(), lr=3e-3)
    for _ in range(1_000):
        inputs, labels = batch(centres, 256)
        optimizer.zero_grad()
        cross_entropy(teacher(inputs), labels).backward()
        optimizer.step()
    return teacher.eval()


def norm(loss: torch.Tensor, student: nn.Module) -> torch.Tensor:
    return nn.utils.get_total_norm(torch.autograd.grad(loss, [*student.parameters()], retain_graph=True))


def train(square: float) -> None:
    """Learn from few labels and from the teacher, with equal weights."""
    torch.manual_seed(0)
    centres = torch.randn(CLASSES, INPUTS)
    teacher = taught(centres)
    student = model(64)
    inputs, labels = batch(centres, 200)
    unseen, answers = batch(centres, 1_000)
    optimizer = torch.optim.AdamW(student.parameters(), lr=1e-3)
    for step in range(1, 301):
        said = student(inputs) / TEMPERATURE
        told = teacher(inputs).detach() / TEMPERATURE
        soft = square * kl_div(
            said.log_softmax(1), told.log_softmax(1), reduction="batchmean", log_target=True
        )
        hard = cross_entropy(student(inputs), labels)
        norms = {"grad_norm/soft": norm(soft, student), "grad_norm/hard": norm(hard, student)}
        optimizer.zero_grad()
        (soft + hard).backward()
        optimizer.step()
        if step % 5 == 0:
            held_out = (student(unseen).argmax(1) == answers).float().mean()
            losses = {"distillation/soft_loss": soft, "distillation/hard_loss": hard}
            log(step, loss=soft + hard, **losses, **norms, eval_accuracy=held_out)


if __name__ == "__main__":
    train(TEMPERATURE**2 if sys.argv[1] == "healthy" else 1.0)
