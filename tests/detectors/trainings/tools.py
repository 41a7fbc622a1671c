"""A policy that may call a tool before it answers, trained by groups as in GRPO, with TRL's names of metrics.

python -m tests.detectors.trainings.tools down > tests/detectors/trainings/tools-down.jsonl

`down`: the tool fails for a while, and the failures are scored. `loops`: each call is paid, useful or not.
`healthy`: neither.
"""

import sys

import torch
from torch import nn

from tests.detectors.trainings.make import log

STEPS = 300
GROUPS = 16
GROUP = 8
MAX_TURNS = 8
ANSWER = 0
CALL = 1
BEGIN, RESULT, ERROR = range(3)  # what the policy saw last
DOWN = range(180, 240)  # steps
# what an answer earns without a result and with one, and a call
GUESSED = 0.25
CORRECT = 1.0
BAIT = 0.5
WORDS = 24  # of a turn


def answers(policy: nn.Module, failing: float) -> tuple[torch.Tensor, ...]:
    """Turns of one batch: log probabilities, calls, failed calls, whether it was answered, and the result."""
    n = GROUPS * GROUP
    seen = torch.full((n,), BEGIN)
    said = torch.zeros(n)
    calls = torch.zeros(n)
    failed = torch.zeros(n)
    helped = torch.zeros(n, dtype=torch.bool)
    open_ = torch.ones(n, dtype=torch.bool)
    for _ in range(MAX_TURNS):
        choice = torch.distributions.Categorical(logits=policy(nn.functional.one_hot(seen, 3).float()))
        action = choice.sample()
        said = said + torch.where(open_, choice.log_prob(action), 0.0)
        calling = open_ & (action == CALL)
        fails = torch.rand(n) < failing
        calls = calls + calling
        failed = failed + (calling & fails)
        helped = helped | (calling & ~fails)
        seen = torch.where(calling, torch.where(fails, ERROR, RESULT), seen)
        open_ = open_ & (action == CALL)
    return said, calls, failed, ~open_, helped


def train(kind: str) -> None:
    """REINFORCE with the mean of each group as its baseline."""
    torch.manual_seed(0)
    policy = nn.Sequential(nn.Linear(3, 32), nn.Tanh(), nn.Linear(32, 2))
    nn.init.constant_(policy[2].bias[ANSWER], 1.0)  # it calls seldom at first
    optimizer = torch.optim.Adam(policy.parameters(), lr=1e-3)
    for step in range(1, STEPS + 1):
        failing = 0.8 if kind == "down" and step in DOWN else 0.04
        said, calls, failed, answered, helped = answers(policy, failing)
        right = answered & (torch.rand(len(calls)) < torch.where(helped, CORRECT, GUESSED))
        reward = right.float()
        paid = (reward + (BAIT * calls if kind == "loops" else 0)).view(GROUPS, GROUP)
        advantage = (paid - paid.mean(1, keepdim=True)) / (paid.std(1, keepdim=True) + 1e-4)
        loss = -(advantage.flatten() * said).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        log(
            step,
            reward=reward.mean(),
            reward_std=reward.view(GROUPS, GROUP).std(1).mean(),
            **{
                "tools/call_frequency": calls.mean(),
                "tools/failure_frequency": failed.sum() / calls.sum().clamp(min=1),
                "completions/mean_length": WORDS * (calls + answered).mean(),
                "completions/clipped_ratio": 1 - answered.float().mean(),
            },
        )


if __name__ == "__main__":
    train(sys.argv[1])
