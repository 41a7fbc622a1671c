"""How bad a finding is."""

from enum import IntEnum
from typing import Literal

SeverityName = Literal["info", "warning", "critical"]
"""The severities as people write and read them."""


class Severity(IntEnum):
    """How bad; WARNING and CRITICAL are worth a message."""

    CLEAN = 0
    INFO = 1
    WARNING = 2
    CRITICAL = 3

    @classmethod
    def named(cls, name: SeverityName) -> "Severity":
        """Return the severity of that name."""
        return cls[name.upper()]

    @property
    def label(self) -> str:
        """The name as people read it: `warning`."""
        return self.name.lower()


INFO = Severity.INFO
WARNING = Severity.WARNING
CRITICAL = Severity.CRITICAL

SEVERITY_COLUMNS = {CRITICAL: "as_critical", WARNING: "as_warning", INFO: "as_info"}
"""Columns in which a rule says where a finding would have this severity, the worst first."""
