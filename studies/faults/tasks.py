"""What the trainings learn, and the parts of a loop that they share."""

import itertools

import torch
from torch import Tensor, nn


class Blobs:
    """Points around a centre for each class; the class is to be found.

    ``noise`` is the standard deviation around a centre, and centres are about 8 apart with 32 features.
    """

    def __init__(self, classes: int = 10, features: int = 32, noise: float = 2.0):
        self.noise = noise
        self.centres = torch.randn(classes, features)
        self.evaluation = self.batch(512)

    def batch(self, size: int) -> tuple[Tensor, Tensor]:
        """Inputs of shape (size, features) and their classes."""
        labels = torch.randint(len(self.centres), (size,))
        noise = torch.randn(size, self.centres.shape[1])
        return self.centres[labels] + self.noise * noise, labels


def layers(*widths: int, activation: type[nn.Module] = nn.ReLU) -> nn.Sequential:
    """A network of linear layers with an activation between them."""
    parts: list[nn.Module] = []
    for before, after in itertools.pairwise(widths):
        parts += [nn.Linear(before, after), activation()]
    return nn.Sequential(*parts[:-1])


def update(loss: Tensor, model: nn.Module, optimizer: torch.optim.Optimizer) -> float:
    """Take a step, and give the norm of the gradient."""
    optimizer.zero_grad()
    loss.backward()
    norm = nn.utils.clip_grad_norm_(model.parameters(), float("inf"))
    optimizer.step()
    return norm.item()


def accuracy(scores: Tensor, labels: Tensor) -> float:
    return (scores.argmax(-1) == labels).float().mean().item()


@torch.no_grad()
def evaluated(model: nn.Module, inputs: Tensor, labels: Tensor) -> dict[str, float]:
    """What an evaluation logs."""
    scores = model(inputs)
    loss = nn.functional.cross_entropy(scores, labels)
    return {"eval/loss": loss.item(), "eval/accuracy": accuracy(scores, labels)}
