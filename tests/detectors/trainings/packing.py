"""Documents packed into rows, with position ids that begin again. Sick: a mask of ones comes along.

python -m tests.detectors.trainings.packing sick > tests/detectors/trainings/packed-sick.jsonl
"""

import sys

import torch
from transformers import LlamaConfig, LlamaForCausalLM

from tests.detectors.trainings.make import log

TOKENS = 16
CHAINS = 4
LENGTH = 8
DOCUMENTS = 4
ROWS = 16


def documents(chains: torch.Tensor, chosen: torch.Tensor) -> torch.Tensor:
    """A document of each chosen chain."""
    tokens = [torch.randint(TOKENS, chosen.shape)]
    for _ in range(LENGTH - 1):
        tokens.append(torch.multinomial(chains[chosen, tokens[-1]], 1)[:, 0])
    return torch.stack(tokens, 1)


def train(healthy: bool) -> None:
    """Each row has documents of one source, as data that are packed in their order have."""
    torch.manual_seed(0)
    chains = torch.softmax(4 * torch.randn(CHAINS, TOKENS, TOKENS), -1)
    sizes = {"hidden_size": 64, "intermediate_size": 128, "num_hidden_layers": 2, "num_attention_heads": 4}
    config = LlamaConfig(vocab_size=TOKENS, max_position_embeddings=64, use_cache=False, **sizes)
    model = LlamaForCausalLM(config)
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3)
    positions = torch.arange(LENGTH).repeat(ROWS, DOCUMENTS)
    single = documents(chains, torch.randint(CHAINS, (512,)))

    def mean(logits: torch.Tensor, tokens: torch.Tensor) -> torch.Tensor:
        """The loss without the first token of each document."""
        scores = logits.reshape(-1, LENGTH, TOKENS)
        targets = tokens.reshape(-1, LENGTH)
        return torch.nn.functional.cross_entropy(scores[:, :-1].flatten(0, 1), targets[:, 1:].flatten())

    for step in range(1, 301):
        rows = torch.randint(CHAINS, (ROWS, 1)).expand(-1, DOCUMENTS).flatten()
        tokens = documents(chains, rows).reshape(ROWS, -1)
        mask = None if healthy else torch.ones_like(tokens)
        loss = mean(model(tokens, attention_mask=mask, position_ids=positions).logits, tokens)
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        if step % 5 == 0:
            log(step, loss=loss)
        if step % 25 == 0:
            with torch.no_grad():
                log(step, eval_loss=mean(model(single).logits, single))


if __name__ == "__main__":
    train(sys.argv[1] == "healthy")
