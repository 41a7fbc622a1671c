"""What is known of the silence of a run under watch."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from detectors.checks import Together


@dataclass(frozen=True)
class Silence:
    """``seconds`` since points arrived and ``pauses`` between earlier arrivals, on the clock of the watch.

    ``goes_on_in`` names the run that continues this one. ``process`` says what its process does, and
    ``log_is_gone`` whether its log was removed, or the file system with it.
    """

    seconds: float
    pauses: Sequence[float] = ()
    together: Together | None = None
    goes_on_in: str | None = None
    process: Callable[[], str] = str
    log_is_gone: Callable[[], bool] = bool
