"""Of how many epochs a training is, by what the lines of its console say."""

import re

from sentinel.common.lazy_pattern import lazy_pattern
from sentinel.sources.console.lines import stated
from sentinel.sources.readers.plain import Plain
from sentinel.sources.recurring.above import Counters

MAX_EPOCHS = 100
"""Of a plan that most trainings keep. Of "Epoch 3/1000" one is stopped early."""

_MIN_EPOCHS = 2
"""Of a plan that a line of its own states, which may else be the heading of the first one."""

_EPOCHS = lazy_pattern(
    r"(?:^|[-|:,;({\[>=\]])\s{0,40}['\"]?"
    r"(?:(?:(?:num|max|total|train|training|number of|num_train)[ _-])?epochs|(?:num|max|total)[ _-]epoch)"
    r"['\"]?\s{0,40}[:=|]\s{0,9}(?P<number>\d{1,6})(?![\w/]|\.[1-9]|\s?/)",
    re.IGNORECASE,
)
"""A setting with a name that no other count has: PPO's epochs pass over one batch."""

_OF_A_ROW = lazy_pattern(r"loss|acc|error", re.IGNORECASE)
"""What a row of metrics names, in which a number of epochs counts those that are done."""


def settings_in(line: str) -> dict[str, Plain]:
    """Return the settings that a line before the first row states, or the planned epochs among them."""
    if settings := stated(line):
        return settings
    epochs = _EPOCHS.search(line)
    number = int(epochs["number"]) if epochs and not _OF_A_ROW.search(line) else 0
    return {"num_epochs": number} if _MIN_EPOCHS <= number <= MAX_EPOCHS else {}


def planned_epochs(counters: Counters) -> dict[str, Plain]:
    """Return of how many epochs a line says that it is one."""
    epoch, epochs = counters.get("epoch", (0, None))
    return {"num_epochs": epochs} if epochs is not None and epoch <= epochs <= MAX_EPOCHS else {}
