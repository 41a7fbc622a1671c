"""What of a configuration says how logs are judged, and what holds where there is none.

Most commands about finished logs have no configuration file. They start faster without what validates one.
"""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol

import msgspec

from sentinel.detectors.api import Declaration
from sentinel.detectors.discovery import all_detectors
from sentinel.notifications.decide import TERMINAL, SinkPolicy

if TYPE_CHECKING:
    from sentinel.sources.console.line_forms import LineForm


class JudgingConfig(Protocol):
    """How logs are judged. `sentinel.config.file.Config` and `Defaults` say it."""

    @property
    def enabled_detectors(self) -> Sequence[Declaration]:
        """The enabled detectors in alphabetical order, then the rules of one's own."""
        ...

    @property
    def parameters(self) -> Mapping[str, Mapping[str, Any]]:
        """The thresholds that are not the defaults, by detector."""
        ...

    @property
    def signals(self) -> Mapping[str, str]:
        """The meaning of the user's own tags."""
        ...

    @property
    def forms(self) -> "Sequence[LineForm]":
        """The forms of lines of consoles."""
        ...

    @property
    def policies(self) -> Sequence[SinkPolicy]:
        """What each sink asks for."""
        ...


class Defaults(msgspec.Struct, frozen=True):
    """How logs are judged where no configuration says it."""

    parameters: Mapping[str, Mapping[str, Any]] = msgspec.field(default_factory=dict)
    signals: Mapping[str, str] = msgspec.field(default_factory=dict)
    forms: "Sequence[LineForm]" = ()
    policies: Sequence[SinkPolicy] = (TERMINAL,)

    @property
    def enabled_detectors(self) -> Sequence[Declaration]:
        """The detectors that are enabled by default, in alphabetical order."""
        return [detector for detector in all_detectors().values() if detector.enabled]
