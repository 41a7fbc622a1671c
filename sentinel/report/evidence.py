"""The evidence of an incident in words: a label and a value with its unit for each column."""

import math
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from sentinel.common.text import clean_text, duration_text
from sentinel.detectors import user_rules
from sentinel.detectors.discovery import all_detectors
from sentinel.detectors.evidence import Measure, Unit, measure_of
from sentinel.detectors.schema import VALUE
from sentinel.detectors.signals import Signal
from sentinel.incidents.incident import Incident

_MAX_EVIDENCE_ROWS = 10
_MAX_WHOLE_NUMBER = 1e9  # a larger number is rounded


def evidence_rows(incident: Incident) -> list[tuple[str, str]]:
    """Return labels and values for a person, the judged value first, without unknown values and further rows.

    A column that the detector no longer declares is shown under its own name. The text is safe to show.
    """
    rows = [row for row in _evidence_rows(incident) if row[1]]
    return [(clean_text(label, 80), clean_text(value, 100)) for label, value in rows[:_MAX_EVIDENCE_ROWS]]


def _evidence_rows(incident: Incident) -> Iterator[tuple[str, str]]:
    detector = all_detectors().get(incident.detector)
    declared = detector.evidence if detector else user_rules.EVIDENCE
    signals = [signal for signal in Signal if signal == incident.signal]
    judged_measure = measure_of(signals[0]) if signals else Measure(VALUE, Unit.NONE)
    for name, value in incident.evidence.items():
        unknown = Measure(name.replace("_", " "), Unit.NONE)
        measure = judged_measure if name == VALUE else declared.get(name, unknown)
        unit = judged_measure.unit if measure.unit is Unit.SAME else measure.unit
        yield measure.label, "" if value is None else in_words(value, unit)


def in_words(value: Any, unit: Unit) -> str:
    """Return a value with its unit: "12%", "3.2 nats", "7 min", "step 400". Text stays as it is."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return str(value)
    return _UNIT_FORMS[unit](value) if unit in _UNIT_FORMS else f"{number(value)} {unit.value}"


def number(value: float) -> str:
    """Format a number with four significant digits: "0.002844", "1.23e+09".

    A whole number below 1e9 keeps all its digits.
    """
    return f"{value:,.0f}" if abs(value) < _MAX_WHOLE_NUMBER and value == round(value) else f"{value:.4g}"


def _count_text(value: float) -> str:
    return f"{round(value):,}" if math.isfinite(value) else number(value)


_UNIT_FORMS: Mapping[Unit, Callable[[float], str]] = {
    Unit.NONE: number,
    Unit.SHARE: lambda share: f"{100 * share:.3g}%",
    Unit.COUNT: _count_text,
    Unit.STEP: lambda step: f"step {_count_text(step)}",
    Unit.STEPS: lambda steps: f"{_count_text(steps)} {'step' if steps == 1 else 'steps'}",
    Unit.POINTS: lambda points: f"{_count_text(points)} {'point' if points == 1 else 'points'}",
    Unit.SECONDS: lambda seconds: duration_text(seconds) if 60 <= seconds < math.inf else f"{seconds:.3g} s",
}
