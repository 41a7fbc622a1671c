"""A small generative adversarial network that learns patterns of waves, or whose discriminator wins at once.

In the sick training the generator learns a hundredth as fast as its opponent.

python -m tests.detectors.trainings.adversaries sick > tests/detectors/trainings/adversaries-sick.jsonl
"""

import json
import sys

import torch
from torch import nn

STEPS = 3_000
EVERY = 10
BATCH = 64
SIZE = 64
# rates of the generator and of the discriminator
SICK = (1e-5, 1e-3)
HEALTHY = (1e-3, 1e-4)


def network(inputs: int, outputs: int) -> nn.Module:
    """Two layers."""
    return nn.Sequential(nn.Linear(inputs, 128), nn.LeakyReLU(0.2), nn.Linear(128, outputs))


def waves() -> torch.Tensor:
    """Waves of any phase, of two lengths."""
    length = torch.randint(1, 3, (BATCH, 1))
    return torch.sin(torch.arange(SIZE) * length * 0.1 + 6.3 * torch.rand(BATCH, 1))


def train(healthy: bool) -> None:
    """Print a row each few steps."""
    torch.manual_seed(0)
    torch.set_num_threads(1)
    generator = network(16, SIZE)
    discriminator = network(SIZE, 1)
    rates = HEALTHY if healthy else SICK
    nets = zip((generator, discriminator), rates, strict=True)
    first, second = (torch.optim.Adam(net.parameters(), lr=rate, betas=(0.5, 0.999)) for net, rate in nets)
    cost = nn.BCEWithLogitsLoss()
    yes = torch.ones(BATCH, 1)
    no = torch.zeros(BATCH, 1)
    for step in range(STEPS):
        fake = generator(torch.randn(BATCH, 16))
        against = cost(discriminator(waves()), yes) + cost(discriminator(fake.detach()), no)
        second.zero_grad()
        against.backward()
        second.step()
        first.zero_grad()
        (for_it := cost(discriminator(fake), yes)).backward()
        first.step()
        if step % EVERY == 0:
            losses = {"d_loss": round(against.item(), 6), "g_loss": round(for_it.item(), 4)}
            sys.stdout.write(json.dumps({"step": step, **losses}) + "\n")


if __name__ == "__main__":
    train(sys.argv[1] == "healthy")
