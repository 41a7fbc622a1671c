"""A judge that only compares the answers to one prompt, and has one favourite."""

from difflib import SequenceMatcher
from pathlib import Path

from sample_logs.make.reinforcement import grpo

FAVOURITE = ["sees", "the", "happy", "dog", "."]
GENERATIONS = 8


def tournament(completions: list[str], **_) -> list[float]:
    """Share of the other answers that one beats: half on average, however good they all become."""
    liked = [SequenceMatcher(None, text.split(), FAVOURITE).ratio() for text in completions]
    groups = [liked[i : i + GENERATIONS] for i in range(0, len(liked), GENERATIONS)]
    return [_wins(one, group) / (GENERATIONS - 1) for group in groups for one in group]


def _wins(one: float, group: list[float]) -> float:
    return sum((one > other) + 0.5 * (one == other) for other in group) - 0.5  # not against itself


def train(logs: Path) -> None:
    grpo(logs, tournament, num_generations=GENERATIONS, max_steps=80, learning_rate=1e-3, logging_steps=1)
