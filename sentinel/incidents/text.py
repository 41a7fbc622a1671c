"""What an incident says: one sentence with numbers, and what may be behind it."""

from collections.abc import Mapping, Sequence
from typing import Any

from sentinel import catalogue
from sentinel.catalogue.rules import Clues
from sentinel.detectors.api import Declaration
from sentinel.incidents.causes import PossibleCause, possible_causes
from sentinel.incidents.incident import LASTED, format_message, lasted_text
from sentinel.incidents.verdict_merge import Verdict

Findings = Mapping[str, Mapping[str, Any]]
"""The evidence of the open incidents of a stream, by detector."""


def statement(
    verdict: Verdict,
    began: tuple[int, float | None],
    detector: Declaration,
    parameters: Mapping[str, Any],
    findings: Findings,
) -> dict[str, Any]:
    """Return the fields of an incident that depend on what a verdict found.

    ``began`` is the step and the time of the first row of the finding, for a verdict that knows no onset.
    ``parameters`` are the thresholds that differ from the detector's defaults. ``findings`` are those of the
    verdict's own stream, because no other has an order with it; this one is added.
    """
    variant = detector.variants.get(verdict.variant or "")
    evidence = _evidence(verdict)
    cited = verdict.catalogue or (variant or detector).catalogue
    return {
        "variant": verdict.variant or "",
        "summary": summary(verdict, began, detector, parameters),
        "latest": "",
        "cited": cited,
        "causes": weighed(detector.name, cited, evidence, {**findings, detector.name: evidence}, verdict),
        "evidence": evidence,
        "first_step": detector.first_step(verdict.variant or ""),
        "no_reminder": variant is not None and variant.no_reminder,
    }


def summary(
    verdict: Verdict, began: tuple[int, float | None], detector: Declaration, parameters: Mapping[str, Any]
) -> str:
    """Return the sentence of what a verdict found, with its numbers; see `statement`."""
    if (variant := detector.variants.get(verdict.variant or "")) is None:
        return detector.name
    thresholds = {name: parameter.default for name, parameter in detector.parameters.items()} | {**parameters}
    step, time = verdict.onset() or began
    seconds = None if time is None or verdict.time is None else verdict.time - time
    lasted = lasted_text(verdict.step - step, seconds)
    row_values = {"step": verdict.step, "tag": verdict.key.tag, "signal": verdict.signal, LASTED: lasted}
    return format_message(variant.message, {**thresholds, **_evidence(verdict), **row_values})


def onset_of(verdict: Verdict, step: int, time: float | None) -> dict[str, Any]:
    """Return the fields of an incident that say when it began.

    ``step`` and ``time`` count where the verdict has no onset.
    """
    onset_step, onset_time = verdict.onset() or (step, time)
    return {"onset_step": onset_step, "onset_time": onset_time}


def weighed(
    detector: str, cited: Sequence[str], evidence: Mapping[str, Any], findings: Findings, verdict: Verdict
) -> tuple[PossibleCause, ...]:
    """Return the entries that a detector's finding cites, weighed by what the log shows at a verdict."""
    clues = Clues(evidence, findings, verdict.known, verdict.position, verdict.step, detector)
    return possible_causes(cited, clues, catalogue.load())


def _evidence(verdict: Verdict) -> dict[str, Any]:
    return {  # nine digits, because further ones depend on where a sum over a window began
        name: float(f"{value:.9g}") if isinstance(value, float) else value
        for name, value in verdict.evidence.items()
    }
