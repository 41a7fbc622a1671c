"""How a detector is declared, and the one way to run it.

A detector is a pure function from a WINDOW frame to a FINDINGS frame (see ``schema``). Everything
else about it is declared in the decorator; its thresholds are keyword-only arguments annotated with
``Annotated[type, "one-line meaning"]``, which makes the signature its configuration and its manual.
"""

import inspect
import re
from collections.abc import Callable, Collection, Mapping
from enum import StrEnum
from functools import cached_property
from typing import TYPE_CHECKING, Annotated, Any, get_args, get_origin, get_type_hints

import msgspec

from sentinel.detectors.declarations import History as History
from sentinel.detectors.declarations import Variant as Variant
from sentinel.detectors.evidence import NO_EVIDENCE, Measure
from sentinel.detectors.schema import Last, Use
from sentinel.detectors.settings import Setting
from sentinel.detectors.severity import CRITICAL as CRITICAL
from sentinel.detectors.severity import INFO as INFO
from sentinel.detectors.severity import WARNING as WARNING
from sentinel.detectors.severity import Severity as Severity
from sentinel.detectors.signals import UNNAMED, Signal
from sentinel.detectors.strictness import Strictness

if TYPE_CHECKING:
    import polars as pl


class Maturity(StrEnum):
    """PREVIEW detectors show in reports and reach only sinks that ask for them."""

    PREVIEW = "preview"
    STABLE = "stable"


class Cause(StrEnum):
    """A class of trouble. What a detector finds belongs to one class and may explain others."""

    NUMERICS = "numerics"  # values that are not finite
    NO_GRADIENT = "no-gradient"  # weights that no gradient reaches
    SCHEDULE = "schedule"  # a learning rate that does not fit the run
    SCALER = "scaler"  # a loss scaler that skips steps
    RESUME = "resume"  # state that a resume lost
    CRASH = "crash"
    STALL = "stall"  # a log that does not go on
    GRADIENT_SIZE = "gradient-size"  # norms and updates out of their band
    DIVERGENCE = "divergence"  # a loss that leaves its level for good
    LOSS_SHAPE = "loss-shape"  # spikes, plateaus, levels
    EVALUATION = "evaluation"
    POLICY = "policy"  # KL, entropy, ratios, lengths
    REWARD = "reward"
    SPEED = "speed"


class Parameter(msgspec.Struct, frozen=True):
    """A threshold: its type, default and one-line meaning."""

    type: type
    default: Any
    meaning: str


CARD_BAR = "card_bar"
"""The parameter of a detector that reads score cards."""

BAR_OF_CARDS = Parameter(float, 1.0, "times the usual points from which a score card pages")


class Demand(msgspec.Struct, frozen=True):
    """Signals that a run must log: any of the judged ones, and all of those that are needed.

    ``clock``: the points must also have times, and be in one log with those of other tags.
    """

    judges: tuple[Signal, ...]
    needs: tuple[Signal, ...]
    clock: bool = False

    def missing(self, signals: Collection[str], no_clock: str = "") -> list[str]:
        """Return what a run that logs these signals lacks; nothing if it can be judged.

        ``no_clock`` says what its log lacks to serve as a clock.
        """
        lacking = [s.value for s in self.needs if s not in signals]
        if self.judges and not any(s in signals for s in self.judges):
            lacking.insert(0, self.judges[0].value)
        return [*lacking, *([no_clock] if self.clock and no_clock else ())]


_FIRST_STEP = re.compile(r"^## What to do\n+(.+?\.)(?:\s|$)", re.DOTALL | re.MULTILINE)
"""The first sentence of a page's advice."""


class Declaration(msgspec.Struct, frozen=True, kw_only=True, dict=True):
    """What every rule declares. ``name`` is kebab-case; ``page`` is the rule's module docstring."""

    name: str
    doc: str
    maturity: Maturity
    variants: Mapping[str, Variant]
    evidence: Mapping[str, Measure]  # what a person sees beside a finding, by column
    hold: int  # verdicts in a row that must be found before a finding counts
    clear: int  # clean verdicts in a row after which it is over
    enabled: bool  # whether it judges where the configuration does not say
    cause: Cause | None  # the class of trouble that it finds
    inhibits: tuple[Cause, ...]  # classes that its findings explain
    informs: frozenset[str] = frozenset()  # variants that page nobody
    needs_consent: bool = False  # whether its pages wait until the run looks ill as a whole
    stricter: Strictness | None = None

    @property
    def catalogue(self) -> tuple[str, ...]:
        """All catalogue ids that it cites, in order of likelihood."""
        return tuple(dict.fromkeys(i for v in self.variants.values() for i in v.catalogue))

    def first_step(self, variant: str) -> str:
        """Return the first thing to do about a finding; empty if the page does not say."""
        found = _FIRST_STEP.search(self.doc)
        of_page = " ".join(found[1].split()) if found else ""
        return (self.variants[variant].first_step if variant in self.variants else "") or of_page

    @property
    def severities(self) -> tuple[Severity, ...]:
        """All severities that its findings can have, the worst first."""
        return tuple(sorted({s for v in self.variants.values() for s in v.severities}, reverse=True))

    @cached_property
    def demand(self) -> Demand:
        """What a run must log to be judged."""
        return Demand((), ())

    @cached_property
    def parameters(self) -> Mapping[str, Parameter]:
        """Its thresholds by name. Raises TypeError for one without a meaning."""
        return {}


class Detector(Declaration, frozen=True, kw_only=True):
    """A rule over the rows of signals: a pure function from a WINDOW frame to FINDINGS."""

    rule: "Callable[..., pl.LazyFrame]"
    judges: tuple[Signal, ...]  # a series of any of these is judged
    needs: tuple[Signal, ...]  # logged at the very same step, else the row does not count
    uses: tuple[Use, ...]  # what else is known of earlier steps, see ``sentinel.detectors.schema``
    settings: tuple[Setting, ...]  # what the run's settings say as of the row, null where they say nothing
    history: History
    non_finite: bool  # whether points that are not finite are rows, too
    every: int  # judges each n-th row of a series, and the first ones
    at_end: bool  # whether it is asked once more about the last row when the run is over
    at_interims: bool  # whether its rule judges the run so far as a whole at interims, as it does at the end
    at_stages: bool  # whether its rule takes the run for over at interims, and is heard at stages of the plan
    reads: tuple[str, ...]  # claims whose score cards judge the outcome beside the rule

    @cached_property
    def demand(self) -> Demand:
        """What a run must log to be judged: nothing, where the rule is about metrics of no signal."""
        return Demand(() if UNNAMED.issuperset(self.judges) else self.judges, self.needs)

    @cached_property
    def parameters(self) -> Mapping[str, Parameter]:
        """Its thresholds by name, and the bar of its cards. Raises TypeError for one without a meaning."""
        return {**parameters_of(self.rule), **({CARD_BAR: BAR_OF_CARDS} if self.reads else {})}

    @property
    def judges_whole(self) -> bool:
        """Whether its rule or its cards judge the run so far as a whole at interims."""
        return self.at_interims or self.at_stages or bool(self.reads)

    @property
    def due(self) -> "pl.Expr":
        """Holds for the rows of a WINDOW frame that the detector judges now."""
        import polars as pl  # slow to import, and who only looks at declarations needs none

        from sentinel.detectors.schema import EARLY_ROWS, ENDED, INDEX, NEW, SUMS_UP

        count = pl.col(INDEX) + 1
        turn = (count % self.every == 0) | (count <= EARLY_ROWS)
        turn = turn | pl.col(SUMS_UP) if self.judges_whole else turn
        return pl.col(NEW) & (turn | pl.col(ENDED) if self.at_end else turn)

    def detect(self, points: "pl.DataFrame", parameters: Mapping[str, Any] | None = None) -> "pl.DataFrame":
        """Return FINDINGS for the new rows of a WINDOW frame that are due, sorted by series and index.

        The columns beside FINDINGS are the judged value and the declared evidence. A clean verdict has no
        variant, whatever the rule put there. The rule keeps the columns of the frame, and may leave out rows
        that it can never judge. Raises TypeError for an unknown parameter, polars' errors for another frame.
        """
        from sentinel.detectors import schema
        from sentinel.detectors.schema import FINDINGS, VALUE

        of_rule = dict(parameters or {})
        bar = of_rule.pop(CARD_BAR, 1.0) if self.reads else 1.0
        found = self._of_rule(points, of_rule)
        if self.reads:
            from sentinel.detectors.reading.opinion import with_opinion

            is_usual = all(self.parameters[name].default == it for name, it in of_rule.items())
            usual = None if is_usual else self._of_rule(points, {})
            found = with_opinion(points, found, self.reads, usual=usual, bar=bar, every=self.every)
        if self.judges_whole:
            found = found.with_columns(schema.at_interims(self.reads, at_all=self.at_interims))
        findings = _collected(
            found.filter(self.due).select(*FINDINGS, VALUE, *self.evidence).sort(schema.SERIES, schema.INDEX)
        )
        return findings.with_columns(schema.capped(self.informs)) if self.informs else findings

    def _of_rule(self, points: "pl.DataFrame", parameters: Mapping[str, Any]) -> "pl.LazyFrame":
        """Return the rows of the rule with all columns of FINDINGS, among them how bad each is."""
        import polars as pl

        from sentinel.detectors.interims import AT_ONCE
        from sentinel.detectors.schema import (
            BLANKS,
            CASTS,
            GROWN,
            SEVERITY,
            STAGE,
            VARIANT,
            severity_columns,
            severity_of,
        )

        declared = {name: variant.severities for name, variant in self.variants.items()}
        blank = {column: pl.lit(None, dtype=pl.Boolean()) for column in severity_columns(declared)}
        if self.judges_whole:
            at_stage = pl.when(pl.col(STAGE).is_not_null() & self.at_stages).then(AT_ONCE).otherwise(0.0)
            blank[GROWN] = pl.lit(AT_ONCE) if self.at_interims else at_stage
        return (
            self.rule(points.lazy().with_columns(*BLANKS, **blank), **parameters)
            .with_columns(CASTS)
            .with_columns(pl.col(SEVERITY).fill_null(severity_of(declared)))
            .with_columns(pl.when(pl.col(SEVERITY) > Severity.CLEAN).then(VARIANT))
        )

    def run(self, points: "pl.DataFrame", parameters: Mapping[str, Any] | None = None) -> "pl.DataFrame":
        """Return the rows of `detect` that have a verdict, without what has to stand at other interims."""
        import polars as pl

        from sentinel.detectors.interims import AT_ONCE
        from sentinel.detectors.schema import INTERIM, SEVERITY

        waits = (pl.col(INTERIM) > AT_ONCE).fill_null(value=False)
        return self.detect(points, parameters).filter(~waits).drop_nulls(SEVERITY)


def _collected(frame: "pl.LazyFrame") -> "pl.DataFrame":
    """Return the rows of a frame as small as windows are.

    Streaming, and other optimisations than this one, cost more than they save there.
    """
    import polars as pl

    only_common_parts = pl.QueryOptFlags.none().update(comm_subexpr_elim=True)
    return frame.collect(engine="in-memory", optimizations=only_common_parts)


def detector(
    *,
    judges: tuple[Signal, ...],
    history: History,
    variants: Mapping[str, Variant],
    evidence: Mapping[str, Measure] = NO_EVIDENCE,
    needs: tuple[Signal, ...] = (),
    uses: tuple[Signal | Use, ...] = (),
    settings: tuple[Setting, ...] = (),
    non_finite: bool = False,
    every: int = 1,
    at_end: bool = False,
    at_interims: bool = False,
    at_stages: bool = False,
    maturity: Maturity = Maturity.PREVIEW,
    hold: int = 2,
    clear: int = 10,
    enabled: bool = True,
    cause: Cause | None = None,
    inhibits: tuple[Cause, ...] = (),
    stricter: Strictness | None = None,
    reads: tuple[str, ...] = (),
    needs_consent: bool = False,
) -> "Callable[[Callable[..., pl.LazyFrame]], Detector]":
    """Declare a detector; see ``Detector`` for the fields. Its name comes from the function's.

    One that ``reads`` claims is asked at the end, and has what their cards use, their history, variants,
    evidence and bar, which becomes stricter with the thresholds.
    """
    if reads:
        from sentinel.detectors.reading.cards import card_of
        from sentinel.detectors.reading.opinion import EVIDENCE, HISTORY, SETTINGS, uses_of, variant_of

        at_end = True
        history = history.with_at_least(HISTORY)
        uses = (*uses, *(use for use in uses_of(reads) if use not in uses))
        settings = (*settings, *(setting for setting in SETTINGS if setting not in settings))
        variants = {**variants, **{claim: variant_of(card_of(claim)) for claim in reads}}
        evidence = {**evidence, **EVIDENCE}
        stricter = (stricter or Strictness()).with_larger(CARD_BAR)

    def declare(rule: "Callable[..., pl.LazyFrame]") -> Detector:
        return Detector(
            **declared(rule, maturity, variants, evidence, hold, clear, enabled, cause, inhibits),
            rule=rule,
            judges=judges,
            needs=needs,
            uses=tuple(Last(use) if isinstance(use, Signal) else use for use in uses),
            settings=settings,
            history=history,
            non_finite=non_finite,
            every=every,
            at_end=at_end,
            at_interims=at_interims,
            at_stages=at_stages,
            stricter=stricter,
            reads=reads,
            needs_consent=needs_consent,
        )

    return declare


def declared(
    rule: Callable[..., Any],
    maturity: Maturity,
    variants: Mapping[str, Variant],
    evidence: Mapping[str, Measure],
    hold: int,
    clear: int,
    enabled: bool,
    cause: Cause | None,
    inhibits: tuple[Cause, ...],
) -> dict[str, Any]:
    """Return the fields of a `Declaration`; a rule's name and page are its function's."""
    return {
        "name": rule.__name__.replace("_", "-"),
        "doc": inspect.getdoc(inspect.getmodule(rule)) or "",
        "maturity": maturity,
        "variants": variants,
        "evidence": evidence,
        "hold": hold,
        "clear": clear,
        "enabled": enabled,
        "cause": cause,
        "inhibits": inhibits,
    }


def parameters_of(rule: Callable[..., Any]) -> dict[str, Parameter]:
    """Return the keyword arguments of a rule. Raises TypeError for one that is annotated with no meaning."""
    hints = get_type_hints(rule, include_extras=True)
    parameters = {}
    for name, argument in inspect.signature(rule).parameters.items():
        if argument.kind is not inspect.Parameter.KEYWORD_ONLY:
            continue
        if get_origin(hints[name]) is not Annotated:
            raise TypeError(f"{rule.__name__}: annotate {name} with Annotated[type, 'meaning']")
        kind, meaning = get_args(hints[name])
        parameters[name] = Parameter(kind, argument.default, meaning)
    return parameters
