"""A reward whose parser never finds the answer, so that every completion earns nothing."""

import re
from pathlib import Path

from sample_logs.make.reinforcement import grpo

ANSWER = re.compile(r"<answer>(.*)</answer>")  # the model was never taught to write these


def correctness(completions: list[str], **_) -> list[float]:
    found = [ANSWER.search(text) for text in completions]
    return [float(match is not None and match[1].strip() == "river") for match in found]


def train(logs: Path) -> None:
    grpo(logs, correctness, max_steps=60, learning_rate=1e-4, logging_steps=1)
