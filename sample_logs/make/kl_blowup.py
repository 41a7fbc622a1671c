"""A reward for cheerful words, and a learning rate that lets the policy run after it."""

from pathlib import Path

from sample_logs.make.reinforcement import grpo

CHEERFUL = {"happy", "lovely", "bright"}


def cheerfulness(completions: list[str], **_) -> list[float]:
    """Share of cheerful words; a text without its full stop earns nothing."""
    texts = [text.split() for text in completions]
    return [sum(w in CHEERFUL for w in t) / len(t) if t and t[-1] == "." else 0.0 for t in texts]


def train(logs: Path) -> None:
    grpo(logs, cheerfulness, max_steps=200, last_step=100, learning_rate=3e-3, warmup_steps=60, beta=0.04)
