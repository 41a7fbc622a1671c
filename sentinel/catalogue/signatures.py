"""Lines that a training prints, by which entries of the catalogue are known.

They stand in the front matter of pages, below `signatures`. A line has a signature if it holds its `text`
and, where there is one, its regular expression `pattern`. Of an exception, `raised` must be found in the
place where it was raised: the last line of one's own code and the innermost one. A severity of `warning` or
`critical` says that the line ends the training. `info` says that the training goes on and that the line is
worth knowing; a report shows it, and nobody is told.
"""

import re

import msgspec

from sentinel.detectors.severity import Severity, SeverityName


class Signature(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One line of front matter. ``entry`` is the id of its page."""

    text: str
    level: SeverityName = msgspec.field(name="severity")
    pattern: str | None = None
    raised: str | None = None
    entry: str = ""

    @property
    def severity(self) -> Severity:
        """How bad a line is that has it."""
        return Severity.named(self.level)

    @property
    def key(self) -> str:
        """A name that no other signature has."""
        return f"{self.entry} {self.text} {self.pattern}"

    def is_in(self, line: str, place: str = "") -> bool:
        """Whether a line has it. ``place`` is where it was raised, empty where nothing was."""
        return (
            self.text in line
            and (self.pattern is None or bool(re.search(self.pattern, line)))
            and (self.raised is None or bool(re.search(self.raised, place)))
        )
