"""What a wait is for."""

from enum import StrEnum

from sentinel.detectors.severity import Severity


class Until(StrEnum):
    """What is waited for: an incident at least this severe, or in any case the end of all runs."""

    CRITICAL = "critical"
    WARNING = "warning"
    END = "end"

    @property
    def severity(self) -> Severity:
        """The least severity that matters."""
        return Severity.CRITICAL if self is Until.CRITICAL else Severity.WARNING
