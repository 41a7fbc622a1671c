"""A sampler beside GRPO's trainer: TRL's code for vLLM, with a copy of the model in the place of vLLM."""

from collections.abc import Sequence
from copy import deepcopy

import torch
from transformers import Cache, PreTrainedModel

Samples = tuple[None, list[list[int]], list[list[list[float]]], None]


class Sampler:
    """What TRL asks of vLLM: copies the weights of the policy, writes answers, and tells their probabilities.

    ``last_copy`` is how often the weights are copied, and ``top_k`` the tokens that it draws from: like vLLM,
    it tells the probability among those. It may round the weights to fewer bits (``precision``), or keep the
    keys and values of the beginning of each prompt for ever (``keeps_prefixes``).
    """

    def __init__(
        self,
        policy: PreTrainedModel,
        end: int,
        *,
        last_copy: int | None = None,
        top_k: int | None = None,
        precision: torch.dtype = torch.float32,
        keeps_prefixes: bool = False,
    ):
        self.policy = policy
        self.end = end
        self.last_copy = last_copy
        self.top_k = top_k
        self.precision = precision
        self.keeps_prefixes = keeps_prefixes
        self.model = type(policy)(policy.config).eval()
        self.copies = 0
        self.prefixes: dict[tuple[int, ...], Cache] = {}

    def sync_weights(self) -> None:
        """Called once a step."""
        self.copies += 1
        if self.last_copy is None or self.copies <= self.last_copy:
            weights = self.policy.state_dict().items()
            self.model.load_state_dict({name: one.to(self.precision).float() for name, one in weights})

    @torch.no_grad()
    def generate(self, prompts: Sequence[list[int]], **_: object) -> Samples:
        """Answers of at most 24 tokens, and the logarithm of the probability of each token."""
        answers = [self._answer(prompt) for prompt in prompts]
        return None, [tokens for tokens, _ in answers], [scores for _, scores in answers], None

    def _answer(self, prompt: list[int]) -> tuple[list[int], list[list[float]]]:
        tokens: list[int] = []
        scores: list[list[float]] = []
        while len(tokens) < 24 and self.end not in tokens:
            logits = self._logits(prompt, tokens)
            if self.top_k:
                logits[logits < logits.topk(self.top_k).values[-1]] = -torch.inf
            chosen = torch.distributions.Categorical(logits=logits).sample()
            scores.append([logits.log_softmax(0)[chosen].item()])
            tokens.append(int(chosen))
        return tokens, scores

    def _logits(self, prompt: list[int], tokens: list[int]) -> torch.Tensor:
        if not self.keeps_prefixes:
            return self.model(torch.tensor([prompt + tokens])).logits[0, -1]
        begun = tuple(prompt[:-1])
        if begun not in self.prefixes:
            self.prefixes[begun] = self.model(torch.tensor([begun]), use_cache=True).past_key_values
        rest = torch.tensor([prompt[-1:] + tokens])
        return self.model(rest, past_key_values=deepcopy(self.prefixes[begun])).logits[0, -1]
