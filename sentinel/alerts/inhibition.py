"""Which incident explains which: one message a cause.

A detector declares the class of trouble that it finds (``cause``) and the classes that this explains
(``silences``). Of two incidents that are related in this way, the one that began first explains the other,
whichever was noticed first and however severe they are. A detector that fires on several tags of a stream
explains itself.
"""

from collections.abc import Mapping

from detectors.api import Declaration, Maturity, Severity
from sentinel.alerts.incident import Incident

OF_THE_RUN = ""
"""The stream of what is found about a run as a whole: its settings, its console, its silence."""


def explains(cause: Incident, effect: Incident, detectors: Mapping[str, Declaration]) -> bool:
    """Whether the trouble that ``cause`` reports brings about the one that ``effect`` reports.

    Incidents of different streams are not related, except to those of the run as a whole. What nobody is
    sent (an info, a preview) explains nothing that somebody would be sent.
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
    """By the step where both count the same steps, else by the clock, if there is one."""
    if one.stream == other.stream:
        return (one.attempt, one.onset_step) < (other.attempt, other.onset_step)
    if one.onset_time is not None and other.onset_time is not None:
        return one.onset_time < other.onset_time
    return one.onset_step < other.onset_step
