"""A reward that grows with the length of the text, and a cap on that length."""

from pathlib import Path

from sample_logs.make.reinforcement import grpo


def detail(completions: list[str], **_) -> list[float]:
    """Return a point for every thing that is described."""
    return [float(text.split().count("the")) for text in completions]


def train(logs: Path) -> None:
    grpo(logs, detail, max_steps=60, learning_rate=3e-4, logging_steps=1)
