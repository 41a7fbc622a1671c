"""A policy with experts beside a sampler in bfloat16. Sick: each engine chooses the experts by itself.

python -m tests.detectors.trainings.routing sick > tests/detectors/trainings/routing-sick.jsonl

Healthy: the trainer replays the choice of the sampler.
"""

import sys
from copy import deepcopy

import torch
from torch import nn

from tests.detectors.trainings.make import log

TOKENS = 32
WIDTH = 32
EXPERTS = 8
CHOSEN = 2
LAYERS = 6
ROWS = 64
LENGTH = 16


class Experts(nn.Module):
    """A layer of which each token takes two experts. It may replay ``choice`` and notes what it chose."""

    def __init__(self) -> None:
        super().__init__()
        self.router = nn.Linear(WIDTH, EXPERTS, bias=False)
        self.experts = nn.Parameter(torch.randn(EXPERTS, WIDTH, WIDTH) / WIDTH**0.5)
        self.norm = nn.LayerNorm(WIDTH)
        self.choice: torch.Tensor | None = None
        self.chose = torch.zeros(0)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        read = self.norm(x)
        logits = self.router(read)
        self.chose = logits.topk(CHOSEN).indices if self.choice is None else self.choice
        weights = logits.gather(-1, self.chose).softmax(-1)
        said = torch.einsum("...w,ewv->...ev", read, self.experts).relu()
        taken = said.gather(-2, self.chose.unsqueeze(-1).expand(*self.chose.shape, WIDTH))
        return x + (weights.unsqueeze(-1) * taken).sum(-2)


class Policy(nn.Module):
    """Tells the next token from the last one and the place."""

    def __init__(self) -> None:
        super().__init__()
        self.tokens = nn.Embedding(TOKENS, WIDTH)
        self.places = nn.Embedding(LENGTH, WIDTH)
        self.layers = nn.ModuleList([Experts() for _ in range(LAYERS)])
        self.out = nn.Linear(WIDTH, TOKENS)

    def forward(self, tokens: torch.Tensor, place: torch.Tensor) -> torch.Tensor:
        x = self.tokens(tokens) + self.places(place)
        for layer in self.layers:
            x = layer(x)
        return self.out(x).float().log_softmax(-1)


@torch.no_grad()
def sampled(sampler: Policy) -> tuple[torch.Tensor, torch.Tensor, list[torch.Tensor]]:
    """Rows of tokens, their log probabilities, and the experts of each layer."""
    for layer in sampler.layers:
        layer.choice = None
    tokens = [torch.zeros(ROWS, dtype=torch.long)]
    scores = []
    choices = []
    for place in range(LENGTH):
        known = sampler(tokens[-1], torch.full((ROWS,), place))
        tokens.append(torch.multinomial(known.exp(), 1)[:, 0])
        scores.append(known.gather(1, tokens[-1][:, None])[:, 0])
        choices.append([layer.chose for layer in sampler.layers])
    by_layer = [torch.stack([at[number] for at in choices], 1) for number in range(LAYERS)]
    return torch.stack(tokens, 1), torch.stack(scores, 1), by_layer


def train(replays: bool) -> None:
    """REINFORCE that is paid for low tokens."""
    torch.manual_seed(0)
    policy = Policy()
    optimizer = torch.optim.Adam(policy.parameters(), lr=1e-3)
    for step in range(1, 61):
        tokens, told, choices = sampled(deepcopy(policy).bfloat16())
        for layer, choice in zip(policy.layers, choices, strict=True):
            layer.choice = choice if replays else None
        known = policy(tokens[:, :-1], torch.arange(LENGTH).expand(ROWS, -1))
        own = known.gather(2, tokens[:, 1:, None])[:, :, 0]
        gap = told - own.detach()
        reward = (tokens[:, 1:] < TOKENS // 4).float().mean(1)
        loss = -((reward - reward.mean()) / (reward.std() + 1e-4)).unsqueeze(1).mul(own).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        differs = [
            (layer.chose.sort().values != choice.sort().values).any(-1)
            for layer, choice in zip(policy.layers, choices, strict=True)
        ]
        log(
            step,
            reward=reward.mean(),
            mismatch_kl=(torch.expm1(-gap) + gap).mean(),
            **{"moe/routing_differs": torch.stack(differs).any(0).float().mean()},
        )


if __name__ == "__main__":
    train(replays=sys.argv[1] == "healthy")
