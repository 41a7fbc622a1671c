"""Rules by which a run speaks for or against an entry of the catalogue.

They stand in the front matter of pages, below `confirms` and `excludes`. Each looks at one thing, which is
its first key, and says in `because` what follows from it:

- `finding: zero-gradient`: another incident of that detector is open in the same log. With `evidence` and
  bounds it is that incident's number.
- `evidence: fall` with `above`, `below` or `is`: a number in the incident's own evidence. With `per: spread`
  it is divided by another one.
- `signal: update_ratio` with `is: logged` or `is: missing`: whether the log has had the signal so far.
- `setting: peak_learning_rate` with `above`, `below` or `is`: a setting of the run (`detectors.settings`).
- `framework: [trl-sft, hf-trainer]`: the log is of one of them.
- `console: 'all_?reduce'`: the error that the incident quotes has this regular expression in it.

What is not known speaks neither for nor against anything.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

import msgspec


class Known(Protocol):
    """What the log of an incident had told by some point of it."""

    @property
    def framework(self) -> str | None:
        """The profile that the stream's names are of."""

    def logs(self, signal: str, position: int) -> bool:
        """Whether the signal had a point up to this position of the stream."""

    def setting(self, name: str, position: int, step: int) -> float | str | None:
        """The value that a setting has there."""


@dataclass(frozen=True)
class Clues:
    """All that rules may look at. ``known`` is None where an incident belongs to no stream of points."""

    evidence: Mapping[str, Any]
    findings: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)  # their evidence, by detector
    known: Known | None = None
    position: int = 0
    step: int = 0

    @property
    def quoted(self) -> str:
        """What the run printed: the line of an error and the place where it was raised."""
        return " ".join(str(self.evidence.get(name, "")) for name in ("text", "place"))


class Rule(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename={"is_": "is"}):
    """One line of front matter."""

    because: str
    finding: str | None = None
    evidence: str | None = None
    per: str | None = None
    signal: str | None = None
    setting: str | None = None
    framework: tuple[str, ...] = ()
    console: str | None = None
    above: float | None = None
    below: float | None = None
    is_: float | str | None = None

    def __str__(self) -> str:
        """What it asks for, in words."""
        if self.finding is not None and self.evidence is None:
            return f"{self.finding} is open"
        if self.signal is not None:
            return f"{self.signal} is {self.is_}"
        if self.console is not None:
            return f"it printed `{self.console}`"
        if self.framework:
            return f"the log is of {', '.join(self.framework)}"
        of = f"{self.evidence or self.setting}{f' per {self.per}' if self.per else ''}"
        of += f" of {self.finding}" if self.finding else ""
        bounds = ("above", self.above), ("below", self.below), ("is", self.is_)
        return " and ".join(f"{of} {name} {bound}" for name, bound in bounds if bound is not None)

    def holds(self, clues: Clues) -> bool:
        """Whether the run is as the rule says."""
        known = clues.known
        evidence = clues.evidence if self.finding is None else clues.findings.get(self.finding)
        if evidence is None or (self.finding is not None and self.evidence is None):
            return evidence is not None
        if self.evidence is not None:
            return self._bounds(_ratio(evidence, self.evidence, self.per))
        if self.console is not None:
            return re.search(self.console, clues.quoted) is not None
        if known is None:
            return False
        if self.signal is not None:
            return known.logs(self.signal, clues.position) is (self.is_ == "logged")
        if self.setting is not None:
            return self._bounds(known.setting(self.setting, clues.position, clues.step))
        return known.framework in self.framework

    def _bounds(self, value: float | str | None) -> bool:
        if isinstance(value, float):
            above = self.above is None or value > self.above
            return above and (self.below is None or value < self.below) and self.is_ in (None, value)
        return value is not None and value == self.is_


def _ratio(evidence: Mapping[str, Any], name: str, per: str | None) -> float | None:
    """A number in the evidence, in units of another one where that is named."""
    value, unit = evidence.get(name), 1.0 if per is None else evidence.get(per)
    if isinstance(value, int | float) and isinstance(unit, int | float) and unit:
        return value / unit
    return None
