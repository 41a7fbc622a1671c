"""Puts what explains an incident, and what it explains, into words for a message about it."""

from collections.abc import Iterable, Sequence

from sentinel.common.text import sentence
from sentinel.incidents.incident import Incident

_MAX_CONSEQUENCES = 3
_MAX_PROCESSES_NAMED = 4
_ROWS = "rows"
"""What the stream of a console's tables is called, behind the name of the process that printed them."""


def cause_text(incident: Incident, others: Iterable[Incident]) -> str:
    """Return what explains an incident among the other open ones of its run; empty if nothing does."""
    cause = next((other for other in others if other.id == incident.inhibited_by), None)
    if cause is None:
        return ""
    return f"{_clause(cause)}, since step {cause.onset_step:,}"


def consequence_texts(incident: Incident, others: Iterable[Incident]) -> list[str]:
    """Return what an incident explains among the other open ones of its run, the earliest first.

    The other processes that report the same are one line.
    """
    explained = sorted(
        (other for other in others if other.inhibited_by == incident.id and other.is_sent_by_default),
        key=lambda other: (other.attempt, other.onset_step),
    )
    streams = [other.stream for other in explained if _is_of_other_process(other, incident)]
    processes = dict.fromkeys(filter(None, map(_process, streams)))
    texts = [_clause(other) for other in explained if not _is_of_other_process(other, incident)]
    of_processes = ", ".join(_first_texts([*processes], _MAX_PROCESSES_NAMED))
    of_processes_text = [f"the same in {of_processes}"] if processes else []
    return [*of_processes_text, *_first_texts([*dict.fromkeys(texts)], _MAX_CONSEQUENCES)]


def _clause(incident: Incident) -> str:
    return sentence(incident.latest or incident.summary).removesuffix(".")


def _is_of_other_process(other: Incident, incident: Incident) -> bool:
    return other.detector == incident.detector and other.stream != incident.stream


def _process(stream: str) -> str:
    """Return the name of a process, which stands in that of its stream behind the file; may be empty."""
    return stream.partition(":")[2].removesuffix(_ROWS).strip("[]")


def _first_texts(texts: Sequence[str], max_texts: int) -> list[str]:
    """Return the first of some texts, and how many more there are."""
    more = [f"and {len(texts) - max_texts} more"] if len(texts) > max_texts else []
    return [*texts[:max_texts], *more]
