"""Decides which incident explains which, so that each cause is sent once.

A detector declares the class of trouble that it finds (``cause``) and the classes that this explains
(``silences``). Of two incidents that are related in this way, the one with the earlier onset explains the
other. Neither the order in which they fired nor their severity matters. If a detector fires on several tags
of a stream, the first of these incidents explains the others.
"""

from collections.abc import Mapping

from detectors.api import Declaration, Maturity, Severity
from sentinel.alerts.incident import Incident

OF_THE_RUN = ""
"""The stream of findings about a run as a whole: its console output, its silence."""


def explains(cause: Incident, effect: Incident, detectors: Mapping[str, Declaration]) -> bool:
    """Whether the incident ``cause`` explains the incident ``effect``.

    Incidents of different streams are not related, except to those of the run as a whole. An incident that
    no sink is sent by default (info, preview) does not explain one that is sent.
    """
    if cause.detector == effect.detector:
        related = cause.stream == effect.stream and cause.tag != effect.tag
    else:
        of_one_process = cause.stream == effect.stream or OF_THE_RUN in (cause.stream, effect.stream)
        related = of_one_process and detectors[effect.detector].cause in detectors[cause.detector].silences
    stable = cause.maturity is Maturity.STABLE or effect.maturity is Maturity.PREVIEW
    heard = stable and cause.severity >= min(effect.severity, Severity.WARNING)
    return related and heard and not _begins_before(effect, cause)


def _begins_before(one: Incident, other: Incident) -> bool:
    """Compare by step within a stream, else by time if both times are known."""
    if one.stream == other.stream:
        return (one.attempt, one.onset_step) < (other.attempt, other.onset_step)
    if one.onset_time is not None and other.onset_time is not None:
        return one.onset_time < other.onset_time
    return one.onset_step < other.onset_step
