"""Makes logs beside this file: small trainings that go wrong in one way, each with a healthy twin.

    python -m tests.detectors.trainings.make experts-sick > tests/detectors/trainings/experts-sick.jsonl

Needs torch 2.13, transformers 5.23 and trl 1.16, a CPU and a minute each. Of the policies' logs only the
lines with metrics are kept.
"""

import json
import math
import random
import sys
from collections.abc import Iterator
from pathlib import Path

import torch
from torch import nn
from torch.nn import functional
from transformers import MixtralConfig, MixtralForCausalLM

TOKENS = 64
LENGTH = 32


def batches() -> Iterator[torch.Tensor]:
    """Eight sequences of a Markov chain each time, one token longer than the models read."""
    torch.manual_seed(0)
    chain = torch.softmax(4 * torch.randn(TOKENS, TOKENS), 1)
    while True:
        tokens = [torch.randint(TOKENS, (8,))]
        for _ in range(LENGTH):
            tokens.append(torch.multinomial(chain[tokens[-1]], 1)[:, 0])
        yield torch.stack(tokens, 1)


def experts(coefficient: float) -> None:
    """A mixture of eight experts. A negative coefficient rewards the router for crowding one of them."""
    torch.manual_seed(0)
    data = batches()
    sizes = {"hidden_size": 32, "intermediate_size": 32, "num_hidden_layers": 2, "num_attention_heads": 2}
    config = MixtralConfig(
        vocab_size=TOKENS,
        num_key_value_heads=2,
        num_local_experts=8,
        output_router_logits=True,
        router_aux_loss_coef=coefficient,
        **sizes,
    )
    model = MixtralForCausalLM(config)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
    for step in range(1, 201):
        tokens = next(data)[:, :LENGTH]
        out = model(tokens, labels=tokens)
        out.loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad()
        used = [len(logits.topk(2).indices.unique()) for logits in out.router_logits]
        log(
            step,
            loss=out.loss - coefficient * out.aux_loss,
            load_balancing_loss=out.aux_loss,
            idle_experts=torch.tensor(2 * 8 - sum(used)),
        )


class Block(nn.Module):
    """A layer of a transformer that notes its largest attention logit."""

    def __init__(self, norms: bool, width: int = 64):
        super().__init__()
        self.norms = norms
        self.largest = torch.zeros(())
        self.mixed = nn.Linear(width, 3 * width, bias=False)
        self.out = nn.Linear(width, width, bias=False)
        self.wide = nn.Linear(width, 4 * width)
        self.narrow = nn.Linear(4 * width, width)
        self.before = nn.LayerNorm(width)
        self.after = nn.LayerNorm(width)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Attention of two heads, and a feed-forward layer."""
        heads = (
            part.unflatten(-1, (2, -1)).transpose(1, 2) for part in self.mixed(self.before(x)).chunk(3, -1)
        )
        q, k, v = heads
        if self.norms:
            q, k = (functional.rms_norm(one, one.shape[-1:]) for one in (q, k))
        logits = q @ k.transpose(-1, -2) / math.sqrt(q.shape[-1])
        self.largest = logits.detach().tril().abs().max()
        hidden = torch.ones_like(logits).triu(1).bool()
        mixed = logits.masked_fill(hidden, -math.inf).softmax(-1) @ v
        x = x + self.out(mixed.transpose(1, 2).flatten(2))
        return x + self.narrow(functional.gelu(self.wide(self.after(x))))


def attention(norms: bool) -> None:
    """A transformer that Muon trains without weight decay, with or without norms on queries and keys."""
    data = batches()
    blocks = [Block(norms), Block(norms)]
    model = nn.Sequential(nn.Embedding(TOKENS, 64), *blocks, nn.Linear(64, TOKENS))
    matrices = [p for block in blocks for p in block.parameters() if p.ndim == 2]
    others = [p for p in model.parameters() if all(p is not one for one in matrices)]
    optimizers = [torch.optim.Muon(matrices, lr=0.05, weight_decay=0), torch.optim.AdamW(others, lr=1e-3)]
    for step in range(1, 1501):
        tokens = next(data)
        loss = functional.cross_entropy(model(tokens[:, :-1]).flatten(0, 1), tokens[:, 1:].flatten())
        loss.backward()
        for optimizer in optimizers:
            optimizer.step()
            optimizer.zero_grad()
        if step % 5 == 0:
            log(step, loss=loss, max_attention_logit=max(block.largest for block in blocks))


SMALL = {"per_device_train_batch_size": 16, "num_generations": 4, "max_completion_length": 24}
POLICY = {**SMALL, "learning_rate": 1e-3, "beta": 0.0, "logging_steps": 1, "report_to": "none"}


def eight_words(completions: list[str], **_: object) -> list[float]:
    """A reward for answers of eight words, with some noise."""
    return [-abs(len(text.split()) - 8) / 8 + random.gauss(0, 0.05) for text in completions]


def policy(bonus: float) -> None:
    """GRPO on a policy that is paid for answers of eight words, with a bonus for entropy."""
    from sample_logs.make.reinforcement import grpo

    random.seed(0)
    grpo(Path("run"), eight_words, max_steps=90, entropy_coef=bonus, **POLICY)


def sampled(**fault: object) -> None:
    """The same beside a sampler, which may have one of the faults that `Sampler` describes."""
    from trl import GRPOTrainer

    from sample_logs.make.reinforcement import grpo
    from tests.detectors.trainings.sampler import Sampler

    class Beside(GRPOTrainer):
        def __init__(self, *given: object, **named: object):
            super().__init__(*given, **named)
            self.use_vllm = True
            self._last_loaded_step = -1
            self.vllm_generation = Sampler(self.model, self._tokenizer.eos_token_id, **fault)

    random.seed(0)
    grpo(Path("run"), eight_words, max_steps=50, trainer=Beside, **POLICY)


def rewarded(animal: str) -> None:
    """GRPO that is paid for a full stop at the end, which is soon learned, and for naming an animal twice."""
    from sample_logs.make.reinforcement import grpo

    def form(completions: list[str], **_: object) -> list[float]:
        return [float(text.rstrip().endswith(".")) for text in completions]

    def answer(completions: list[str], **_: object) -> list[float]:
        return [float(text.split().count(animal) >= 2) for text in completions]

    random.seed(0)
    grpo(Path("run"), [form, answer], max_steps=60, **{**POLICY, "per_device_train_batch_size": 32})


def log(step: int, **values: torch.Tensor) -> None:
    """Print a line of JSON."""
    print(json.dumps({"step": step, **{name: float(f"{value:.5g}") for name, value in values.items()}}))


MADE = {
    "experts-sick": lambda: experts(-0.05),
    "experts-healthy": lambda: experts(0.05),
    "attention-sick": lambda: attention(norms=False),
    "attention-healthy": lambda: attention(norms=True),
    "policy-sick": lambda: policy(1.0),
    "policy-healthy": lambda: policy(0.0),
    "stale-sick": lambda: sampled(last_copy=5),
    "truncated-sick": lambda: sampled(top_k=3),
    "rounded-healthy": lambda: sampled(precision=torch.float8_e4m3fn),
    "prefix-sick": lambda: sampled(keeps_prefixes=True),
    "sampled-healthy": sampled,
    "format-sick": lambda: rewarded("unicorn"),
    "format-healthy": lambda: rewarded("dog"),
}

if __name__ == "__main__":
    MADE[sys.argv[1]]()
