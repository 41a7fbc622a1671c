"""Decides which incident explains which, so that each cause is sent once.

A detector declares the class of problem that it finds (``cause``) and the classes that this explains
(``inhibits``). Of two incidents that are related in this way, the one with the earlier onset explains the
other. Neither the order in which they fired nor their severity matters. If a detector fires on several tags
of a stream, the first of these incidents explains the others. Where either could explain the other, the two
are one problem: the first is over once both are.
"""

from collections.abc import Mapping

from sentinel.detectors.api import Declaration, Maturity, Severity
from sentinel.incidents.incident import Incident

OF_THE_RUN = ""
"""The stream of findings about a run as a whole: its console output, its silence."""


def explains(cause: Incident, effect: Incident, detectors: Mapping[str, Declaration]) -> bool:
    """Return whether the incident ``cause`` explains the incident ``effect``.

    Incidents of different streams are not related, except to those of the run as a whole. An incident that
    no sink is sent by default (info, preview) does not explain one that is sent.
    """
    return _may_explain(cause, effect, detectors) and not _begins_before(effect, cause)


def goes_on_as(cause: Incident, effect: Incident, detectors: Mapping[str, Declaration]) -> bool:
    """Return whether ``effect``, which ``cause`` explains, would explain it as well if it had begun first.

    The two are then one problem, such as a loss and a gradient norm that diverge together.
    """
    return effect.inhibited_by == cause.id and _may_explain(effect, cause, detectors)


def _may_explain(cause: Incident, effect: Incident, detectors: Mapping[str, Declaration]) -> bool:
    if cause.detector == effect.detector:
        related = cause.stream == effect.stream and cause.tag != effect.tag
    else:
        of_one_process = cause.stream == effect.stream or OF_THE_RUN in (cause.stream, effect.stream)
        related = of_one_process and detectors[effect.detector].cause in detectors[cause.detector].inhibits
    stable = cause.maturity is Maturity.STABLE or effect.maturity is Maturity.PREVIEW
    return related and stable and cause.severity >= min(effect.severity, Severity.WARNING)


def _begins_before(this: Incident, other: Incident) -> bool:
    """Compare by step within a stream, else by time if both times are known. Of equal times steps decide."""
    if this.stream == other.stream:
        return (this.attempt, this.onset_step) < (other.attempt, other.onset_step)
    if this.onset_time is not None and other.onset_time is not None:
        return (this.onset_time, this.onset_step) < (other.onset_time, other.onset_step)
    return this.onset_step < other.onset_step
