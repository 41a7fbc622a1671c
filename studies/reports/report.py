"""A report: a training that somebody told of in public, and what a good tool says of it.

What is right to say was written down before sentinel judged the log. No words of a report are used.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

Write = Callable[[Path, np.random.Generator], None]


@dataclass(frozen=True)
class Report:
    """``write`` leaves the log below a directory.

    ``expect`` are detectors of which one has to tell, none where the training is healthy; a note is enough
    where ``note_is_enough``. ``first`` are the catalogue entries of which one stands first; none where
    nobody knows.
    """

    source: str  # repository and number
    framework: str
    says: str
    write: Write
    expect: Sequence[str] = ()
    first: Sequence[str] = ()
    note_is_enough: bool = False

    @property
    def healthy(self) -> bool:
        """Whether nothing is wrong with the training."""
        return not self.expect

    @property
    def name(self) -> str:
        """The directory of its log."""
        return self.source.replace("/", "-").replace("#", "-")


REPORTS: list[Report] = []
"""All reports, in the order in which they were told of."""


def report(source: str, framework: str, says: str, **fields: object) -> Callable[[Write], Write]:
    """Declare the report of which a function writes the log."""

    def declare(write: Write) -> Write:
        REPORTS.append(Report(source, framework, says, write, **fields))  # type: ignore[arg-type]
        return write

    return declare
