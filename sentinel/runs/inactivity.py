"""What a watch knows of a run whose log is silent."""

from collections.abc import Callable, Sequence

import msgspec

from sentinel.detectors.run_checks import HangDiagnosis, Together, Writer


class Inactivity(msgspec.Struct, frozen=True):
    """``seconds`` since points arrived and ``pauses`` between earlier arrivals, on the clock of the watch.

    ``goes_on_in`` names the run that continues this one, and ``likewise`` says how runs like it ended.
    ``process`` is the process that writes the log. ``log_is_gone`` says whether the log was removed, or the
    file system with it. ``standstill``, ``dead_rank`` and ``shortages`` are those of `RunView`.
    """

    seconds: float
    pauses: Sequence[float] = ()
    together: Together | None = None
    goes_on_in: str | None = None
    likewise: Callable[[], str] = str
    process: Callable[[], Writer] = Writer
    log_is_gone: Callable[[], bool] = bool
    standstill: Callable[[], HangDiagnosis | None] = HangDiagnosis
    dead_rank: str | None = None
    ranks: int = 0
    shortages: Callable[[], str] = str
