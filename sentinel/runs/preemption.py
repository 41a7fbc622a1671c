"""How a run tells that it is ended from outside, by a person or by a scheduler."""

import signal

from sentinel.common.lazy_pattern import lazy_pattern

ENDS_FROM_OUTSIDE = frozenset({signal.SIGHUP, signal.SIGINT, signal.SIGTERM})
"""Signals by which a person or a scheduler ends a process."""

_PREEMPTED = lazy_pattern(
    r"\*\*\* (?:JOB|STEP) \S+ ON \S+ CANCELLED AT \S+"  # slurmstepd: a time limit, a preemption, scancel
    r"|Received (?:15|SIGTERM) death signal, shutting down workers"  # torch's elastic agent
    r"|SignalException: Process \d+ got signal: (?:1|2|15)\b"  # its processes
    r"|Received SIGTERM: 15\b|\bSIGTERMException\b"  # Lightning's signal_connector.py
    r"|(?:^|\]:? ?)KeyboardInterrupt:?\s*$"  # CPython; a launcher may put the rank before it
    r"|\bDetected KeyboardInterrupt\b"  # Lightning's trainer
    r"|\bCtrl ?\+ ?C detected\b"  # W&B's agent of a sweep
    r"|Handling auto-requeue signal: \d+"  # the same
)

PREEMPTION_WORDS = ("CANCELLED AT", "signal", "SIGTERM", "KeyboardInterrupt", "Ctrl")
"""Every such line holds one of them."""


def preempts(line: str) -> bool:
    """Return whether a line says that the run is ended from outside."""
    # Nearly no line has a word, which is found in a tenth of the time of the pattern.
    return any(word in line for word in PREEMPTION_WORDS) and _PREEMPTED.search(line) is not None
