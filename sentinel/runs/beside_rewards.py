"""Tells whether a log stands beside another file of rewards, as `loss.csv` does beside `rewards.csv`.

Such files are the curves of one agent, each written on its own. The loss of an agent need not fall, so it is
judged as that of a value function.
"""

import os
from pathlib import Path

from sentinel.series.roles.names import reading_of_a_file
from sentinel.series.roles.role import Kind, Measure

_OF_NUMBERS = (".csv", ".tsv", ".txt", ".log", ".dat", ".json", ".jsonl", ".npy", ".npz")
_SCORES = frozenset({"score", "scores"})


def is_beside_rewards(log: Path) -> bool:
    """Return whether a file stands beside the log whose name says that it holds rewards. Never raises."""
    try:
        names = os.listdir(log.parent)
    except OSError:
        return False
    others = (name for name in names if name != log.name and name.endswith(_OF_NUMBERS))
    return any(map(_holds_rewards, others))


def _holds_rewards(name: str) -> bool:
    """Return whether the name of a file is that of a reward. A score may be one of anything."""
    by_name = reading_of_a_file(Path(name).stem)
    role = by_name.role
    is_reward = role is not None and role.kind is Kind.OUTCOME and role.measure is Measure.REWARD
    return is_reward and _SCORES.isdisjoint(by_name.words)
