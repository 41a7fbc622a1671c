"""Rules by which a run speaks for or against an entry of the catalogue.

They stand in the front matter of pages. A rule names what it looks at, and says in `because` what follows
from it. If it names several things, all of them must hold:

- `finding: zero-gradient`: an incident of that detector, which may be this one, is open in the same log. A
  rule that asks for nothing else says nothing about the causes of that incident itself.
- `evidence: {fall: {above: 0.1}}`: a number in the evidence of the incident, or of that finding, has these
  bounds. `step` is the step at which the incident fired or got worse.
- `signals: {update_ratio: logged}`, or `missing`: whether the log has had the signal so far.
- `settings: {peak_learning_rate: {below: 1.0e-7}}`: a setting of the run (`sentinel.detectors.settings`) has
  these bounds.
- `framework: [trl-sft, hf-trainer]`: the log is of one of them; `unknown` is a log of no known framework.
- `console: 'all_?reduce'`: the error that the incident quotes has this regular expression in it.

A range of values is `above`, `below` and `is`, which takes a value, a list of values, or `missing` for what
is not known. `per` divides by another number of the same kind first, `modulo` takes the remainder. A rule
whose numbers are not known does not hold.

`needs.toml` says in the same conditions how a run shows what an entry supposes of it.
"""

import re
from collections.abc import Callable, Iterable, Mapping
from functools import cache
from pathlib import Path
from typing import Any, Literal, Protocol

import msgspec

from sentinel.common.text import one_of

NEEDS = Path(__file__).parent / "needs.json"
"""The data of ``needs.toml``, which `make docs` writes, since JSON is parsed in a tenth of the time."""

MISSING = "missing"
UNKNOWN = "unknown"


class Known(Protocol):
    """What the log of an incident had told by some point of it."""

    @property
    def framework(self) -> str | None:
        """The profile that the stream's names are of."""

    def shows(self, word: str) -> bool:
        """Return whether every run of the framework has what this word of `needs.toml` means."""

    def logs(self, signal: str, position: int) -> bool:
        """Return whether the signal had a point up to this position of the stream."""

    def setting(self, name: str, position: int, step: int) -> float | str | bool | None:
        """Return the value that a setting has there; a switch is true or false."""


class Clues(msgspec.Struct, frozen=True):
    """All that rules may look at. ``log`` is None where an incident belongs to no stream of points.

    ``detector`` is that of the incident, which is one of the ``findings``.
    """

    evidence: Mapping[str, Any]
    findings: Mapping[str, Mapping[str, Any]] = msgspec.field(
        default_factory=dict
    )  # their evidence, by detector
    log: Known | None = None
    position: int = 0
    step: int = 0
    detector: str = ""

    @property
    def quoted(self) -> str:
        """What the run printed: the line of an error and the place where it was raised."""
        return " ".join(str(self.evidence.get(name, "")) for name in ("text", "place"))


class ValueRange(
    msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True, rename={"is_": "is"}
):
    """Where a value must lie, as the module describes."""

    above: float | None = None
    below: float | None = None
    is_: bool | float | str | tuple[bool | float | str, ...] | None = None
    per: str | None = None
    modulo: str | None = None

    def hold(self, name: str, look_up: Callable[[str], Any]) -> bool:
        """Return whether the value of that name lies there; ``look_up`` gives None for an unknown name."""
        value = look_up(name)
        choices = self.is_ if isinstance(self.is_, tuple) else (self.is_,)
        if value is None:
            return MISSING in choices
        if (other := self.per or self.modulo) is not None:
            unit = look_up(other)
            if not (isinstance(value, int | float) and isinstance(unit, int | float) and unit):
                return False
            value = value / unit if self.per else value % unit
        if (self.above, self.below) != (None, None) and not isinstance(value, int | float):
            return False
        return (
            (self.above is None or value > self.above)
            and (self.below is None or value < self.below)
            and (self.is_ is None or value in choices)
        )

    def text_for(self, name: str) -> str:
        """Return the question to a value of that name, in words."""
        choices = self.is_ if isinstance(self.is_, tuple) else (self.is_,)
        number_text = (
            f"{name} per {self.per}" if self.per else f"{name} modulo {self.modulo}" if self.modulo else name
        )
        bounds = (
            f"above {self.above:g}" if self.above is not None else "",
            f"below {self.below:g}" if self.below is not None else "",
            f"is {one_of(map(_word, choices))}" if self.is_ is not None else "",
        )
        return f"{number_text} {' and '.join(filter(None, bounds))}"


class Condition(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """What a rule asks for."""

    finding: str | None = None
    evidence: dict[str, ValueRange] = {}
    signals: dict[str, Literal["logged", "missing"]] = {}
    settings: dict[str, ValueRange] = {}
    framework: tuple[str, ...] = ()
    console: str | None = None

    def __str__(self) -> str:
        """Return what it asks for, in words."""
        owner = f"{self.finding}'s " if self.finding is not None else ""
        conditions = [f"{self.finding} is open"] if owner and not self.evidence else []
        conditions += [f"{owner}{bounds.text_for(name)}" for name, bounds in self.evidence.items()]
        conditions += [f"{name} is {state}" for name, state in self.signals.items()]
        conditions += [bounds.text_for(name) for name, bounds in self.settings.items()]
        conditions += [f"it printed `{self.console}`"] if self.console is not None else []
        conditions += [f"the log is of {one_of(self.framework)}"] if self.framework else []
        return ", ".join(conditions)

    def holds(self, clues: Clues) -> bool:
        """Return whether the run is as the rule says."""
        log = clues.log
        evidence = clues.evidence if self.finding is None else clues.findings.get(self.finding)
        if evidence is None:
            return False
        asks_log = self.framework or self.signals or self.settings
        if asks_log and (log is None or not self._holds_of(log, clues.position, clues.step)):
            return False
        if self.console is not None and re.search(self.console, clues.quoted) is None:
            return False
        numbers = {"step": clues.step or None, **evidence}
        return all(bounds.hold(name, numbers.get) for name, bounds in self.evidence.items())

    def _holds_of(self, log: Known, position: int, step: int) -> bool:
        """Return whether the log, apart from findings, is as the rule says."""
        if self.framework and (log.framework or UNKNOWN) not in self.framework:
            return False
        for name, be in self.signals.items():
            if log.logs(name, position) is not (be == "logged"):
                return False
        for name, bounds in self.settings.items():
            if not bounds.hold(name, lambda other: log.setting(other, position, step)):
                return False
        return True


class CauseRule(Condition, frozen=True, forbid_unknown_fields=True, omit_defaults=True, kw_only=True):
    """One line of front matter."""

    because: str

    @property
    def is_fact(self) -> bool:
        """Whether it looks at what happened in the run, not only at its settings, framework and signals."""
        return bool(self.finding or self.evidence or self.console)

    def speaks(self, clues: Clues) -> bool:
        """Return whether it holds and says more than that the incident is there."""
        if not self.holds(clues):
            return False
        says_more = self.evidence or self.signals or self.settings or self.framework or self.console
        return self.finding != clues.detector or bool(says_more)


def _word(choice: bool | float | str | None) -> str:
    return (
        str(choice).lower()
        if isinstance(choice, bool)
        else f"{choice:g}"
        if isinstance(choice, float)
        else str(choice)
    )


class Need(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One word, as ``needs.toml`` describes."""

    means: str
    follows: tuple[str, ...] = ()
    signs: tuple[Condition, ...] = msgspec.field(default=(), name="shown")


@cache
def needs() -> Mapping[str, Need]:
    """Return all words. Raises msgspec.ValidationError for a row that is no word."""
    return msgspec.json.decode(NEEDS.read_bytes(), type=dict[str, Need])


def not_shown(words: Iterable[str], clues: Clues) -> tuple[str, ...]:
    """Return what the words mean that the run does not show, by what precedes the incident in its log."""
    return tuple(needs()[word].means for word in words if not _is_shown(word, clues))


def _is_shown(word: str, clues: Clues) -> bool:
    need = needs()[word]
    return (
        (clues.log is not None and clues.log.shows(word))
        or any(condition.holds(clues) for condition in need.signs)
        or any(_is_shown(other, clues) for other in need.follows)
    )
