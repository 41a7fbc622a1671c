"""How bad a finding is."""

from collections.abc import Collection, Mapping, Sequence
from enum import IntEnum
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    import polars as pl

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
        """The severity of that name."""
        return cls[name.upper()]

    @property
    def label(self) -> str:
        """The name as people read it: `warning`."""
        return self.name.lower()


INFO, WARNING, CRITICAL = Severity.INFO, Severity.WARNING, Severity.CRITICAL

AS = {CRITICAL: "as_critical", WARNING: "as_warning", INFO: "as_info"}
"""Columns in which a rule says where a finding would have this severity, the worst first."""


def severity_of(declared: Mapping[str, Sequence[Severity]], columns: Collection[str]) -> "pl.Expr":
    """How bad a finding is, null for a row without a variant.

    It has the worst severity that its variant declares and that one of the ``columns`` says, else the first
    one that its variant declares. ``declared`` has the severities of each variant.
    """
    import polars as pl  # slow to import, and who only looks at declarations needs none

    from detectors.schema import FINDINGS, SEVERITY, VARIANT

    usual = {name: severities[0] for name, severities in declared.items()}
    return pl.coalesce(
        *(
            pl.when(
                pl.col(column) & pl.col(VARIANT).is_in([n for n, s in declared.items() if severity in s])
            ).then(severity)
            for severity, column in AS.items()
            if column in columns
        ),
        pl.col(VARIANT).replace_strict(usual, default=None, return_dtype=FINDINGS[SEVERITY]),
    )
