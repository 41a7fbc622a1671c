"""`[[rules]]`: a person's own thresholds, which become detectors."""

import re
from collections.abc import Mapping
from pathlib import Path
from string import Formatter
from typing import Annotated, Any, Literal, Self

import msgspec
from pydantic import Field, PlainValidator, model_validator

from sentinel.common.config_table import ConfigTable
from sentinel.common.text import seconds_in
from sentinel.detectors.api import Declaration, Severity
from sentinel.detectors.run_checks import Expected
from sentinel.detectors.signals import OWN, Signal
from sentinel.detectors.user_rules import SAYS, SAYS_OF_ABSENCE, Bounds, own_absence, own_rule
from sentinel.incidents.incident import DURATION

_CONDITIONS = ("above", "below", "outside", "rises_by", "falls_by", "missing_for")


def _duration(text: Any) -> float:
    if not isinstance(text, str):
        raise ValueError('should be a string such as "30m", "2h" or "1d"')
    return seconds_in(text)


Duration = Annotated[float, PlainValidator(_duration, json_schema_input_type=str)]
"""Seconds, written as "30m"."""


class Rule(ConfigTable):
    """One rule of one's own."""

    name: str = Field(description="what it is called in messages and in `sentinel explain`")
    signal: Literal[tuple(map(str, Signal))] | None = Field(  # type: ignore[valid-type]
        None, description="the signal that it judges, whatever its tag is called"
    )
    tag: str | None = Field(
        None, min_length=1, description="the tags that it judges; `*` stands for a part without `/`"
    )
    above: float | None = Field(None, description="a value above this is wrong")
    below: float | None = Field(None, description="a value below this is wrong")
    outside: tuple[float, float] | None = Field(None, description="a value below or above the two is wrong")
    rises_by: float | None = Field(
        None, gt=0, description="a value that is this much above the lowest so far is wrong"
    )
    falls_by: float | None = Field(
        None, gt=0, description="a value that is this much below the highest so far is wrong"
    )
    missing_for: Duration | None = Field(
        None,
        description='a tag is missing if it is not logged for this long ("30m", "2h", "1d") while the run '
        "goes on",
    )
    for_points: int = Field(3, ge=1, le=10_000, description="points in a row that must be wrong")
    severity: Literal["info", "warning", "critical"] = Field("warning", description="how bad it is")
    message: str = Field(
        "",
        description="the message; may hold {value}, {step}, {tag}, {signal}, {lasted}, {lowest} and "
        "{highest}; with `missing_for` {tag}, {step}, {lasted}, {last_step} and {missing_seconds:duration}",
    )

    @property
    def detector_name(self) -> str:
        """Its name in kebab-case, as detectors have it."""
        return "-".join(re.findall(r"[a-z0-9]+", self.name.casefold()))

    @model_validator(mode="after")
    def _is_one_rule(self) -> Self:
        if not self.detector_name:
            raise ValueError("name needs a letter or a digit from a to z and 0 to 9")
        if (self.signal is None) == (self.tag is None):
            raise ValueError(f"rule {self.name!r}: give either signal or tag")
        if sum(getattr(self, name) is not None for name in _CONDITIONS) != 1:
            raise ValueError(f"rule {self.name!r}: give exactly one of {', '.join(_CONDITIONS)}")
        if self.outside is not None and self.outside[0] > self.outside[1]:
            raise ValueError(f"rule {self.name!r}: outside = [lower, upper]")
        if self.missing_for is not None and "for_points" in self.model_fields_set:
            raise ValueError(f"rule {self.name!r}: for_points has no meaning beside missing_for")
        if problem := _problem_of_format(self.message, SAYS if self.missing_for is None else SAYS_OF_ABSENCE):
            raise ValueError(f"rule {self.name!r}: say: {problem}")
        return self

    def detector(self) -> Declaration:
        """Return the detector that applies it."""
        signal = Signal(self.signal or f"{OWN}{self.tag}")
        severity = Severity[self.severity.upper()]
        if self.missing_for is not None:
            return own_absence(self.detector_name, Expected(signal, self.missing_for), severity, self.message)
        below, above = self.outside or (self.below, self.above)
        bounds = Bounds(above, below, self.rises_by, self.falls_by)
        return own_rule(self.detector_name, signal, bounds, self.for_points, severity, self.message)


class WrittenRule(msgspec.Struct, frozen=True):
    """A rule, its keys as they are written, and the file and the line where its name stands."""

    rule: Rule
    keys: Mapping[str, Any]
    file: Path
    line: int


def _problem_of_format(say: str, variables: Mapping[str, Any]) -> str:
    """Return what is wrong with a message that may hold what is ``variables``; empty if nothing is."""
    try:
        fields = [(name, form) for _, name, form, _ in Formatter().parse(say) if name is not None]
        if unknown := sorted({name for name, _ in fields} - {*variables}):
            return f"{{{unknown[0]}}} is unknown; use {', '.join(f'{{{name}}}' for name in variables)}"
        for name, form in fields:
            if form != DURATION:
                format(variables[name], form or "")
    except (ValueError, IndexError, KeyError) as error:
        return f"not a format string: {error}"
    return ""


def unique(rules: list[Rule], names: set[str]) -> list[Rule]:
    """Return the same rules. Raises ValueError if a name is one of ``names``, or that of two rules."""
    for rule in rules:
        if rule.detector_name in names:
            raise ValueError(
                f"another rule or detector is called {rule.detector_name!r}; choose another name"
            )
        names = {*names, rule.detector_name}
    return rules
