"""How a run check is declared: a rule about a run as a whole, where there are no rows to judge.

A check is a pure function of what is known of one run; the clock is handed in with it. It is asked when a
run printed something, when something of it is judged no more, when an expected tag is missed or comes back,
when its log cannot be read any more or can be again, when points arrived after it had found something, at
each tick of a watch, and when nothing more can come. It states what it finds, and by a clean finding what is
over.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cached_property
from typing import Any, Literal

import msgspec

from sentinel.detectors.api import (
    Cause,
    Declaration,
    Demand,
    Maturity,
    Parameter,
    Severity,
    Variant,
    declared,
    parameters_of,
)
from sentinel.detectors.evidence import NO_EVIDENCE, Measure
from sentinel.detectors.signals import Signal


class Printed(msgspec.Struct, frozen=True):
    """News from a console: an error that was printed, or that a run went on after one."""

    origin: str  # name of the file that it stands in; empty for what the log itself holds
    line: int  # from 1
    text: str  # the error's own line, cut
    step: int | None  # the last one before it, where the log and the console are one
    time: float | None  # seconds since the epoch, where lines have times
    severity: Severity  # CLEAN where the run went on
    location: str = ""  # of an exception: where it was raised
    catalogue: tuple[str, ...] = ()  # entries whose signature the line bears
    preempted: bool = False  # the scheduler or a signal ended the run, and not an error of its own


class Stopped(msgspec.Struct, frozen=True):
    """What of a run is not judged any more, from where on, and why.

    ``signal`` is empty where it is a whole stream, and names what has too many tags in it otherwise.
    """

    stream: str
    step: int
    time: float | None  # seconds since the epoch, on the log's clock
    reason: str
    signal: str = ""


class Inventory(msgspec.Struct, frozen=True):
    """What a stream had logged by a step at which it has logged everything that it is going to log."""

    stream: str
    step: int
    time: float | None  # seconds since the epoch, on the log's clock
    framework: str | None
    signals: frozenset[str]
    settings: Mapping[str, float | str | bool]  # by their names in `sentinel.detectors.settings.Setting`


class Expected(msgspec.Struct, frozen=True):
    """That tags of a signal, once logged, are logged again within some time while their stream goes on."""

    signal: Signal
    within_seconds: float

    @property
    def key(self) -> str:
        """A name that is unique among what is expected of a stream."""
        return f"{self.signal} {self.within_seconds!r}"


class Absence(msgspec.Struct, frozen=True):
    """That an expected tag was not logged for too long although its stream went on; ``over`` once it is back.

    Times are seconds since the epoch on the log's clock, None where it has none.
    """

    rule: Expected
    tag: str
    index: int  # of the point at which this is known
    step: int
    time: float | None
    seconds: float  # without the tag
    last_step: int  # at which the tag was logged before
    last_time: float | None
    over: bool


class Deviation(msgspec.Struct, frozen=True):
    """That a signal of a run lastingly left what healthy runs of its program show, on a bad side.

    ``level`` is the signal's at ``step``, where that was certain; ``usual`` is its siblings', ``limit`` the
    most that one of 200 of them shows there, and ``score`` how far it was off in their spread.
    """

    signal: Signal
    tag: str
    higher: bool  # than its siblings
    onset_step: int
    step: int
    level: float
    usual: float
    limit: float
    score: float


class SiblingRange(msgspec.Struct, frozen=True):
    """How low and how high the healthy siblings of a run get at rising steps, in means around these."""

    steps: Sequence[int]
    low: Sequence[float]
    high: Sequence[float]


class SiblingComparison(msgspec.Struct, frozen=True):
    """A run beside the finished healthy runs of its program: ``siblings`` of them, whose names are ``names``.

    ``departed`` has the signals that left the band, in the order of their steps. ``differ`` says in which
    settings the run differs from all of them; empty if in none. ``bands`` has the band of each tag that was
    compared.
    """

    siblings: int
    deviations: Sequence[Deviation]
    differ: str = ""
    names: Sequence[str] = ()
    bands: Mapping[str, SiblingRange] = msgspec.field(default_factory=dict)


class Ended(msgspec.Struct, frozen=True):
    """How a run ended, as its log, its console or its server says."""

    outcome: Literal["finished", "crashed", "preempted"]
    evidence: str  # "exit code 1 in the exit record"
    exited: bool = False  # known only because its process exited


class Together(msgspec.Struct, frozen=True):
    """That all runs of a place which are expected to grow are silent; ``runs`` of them, this one among them,
    fell silent at about the same time.
    """

    runs: int
    location: str
    since: str  # when the last of them grew, in words
    shortest_seconds: float  # the shortest silence of them
    same_step: bool = False  # all of them stopped at one step, as trainings of equal length do


class Completion(msgspec.Struct, frozen=True):
    """What a silent log says about whether more is to come, in words; empty if it says nothing.

    ``over``: why the run seems to have ended. ``goes_on``: why it should go on; a run may stop before its
    plan is reached, but hardly ``amid`` its schedule. ``hint``: a sign of an end that may be chance.
    ``may_be_last``: the next point of the log's rhythm lies behind the plan.
    """

    over: str = ""
    goes_on: str = ""
    amid: bool = False
    hint: str = ""
    may_be_last: bool = False


class Writer(msgspec.Struct, frozen=True):
    """The process that writes a log: what is known of it, in words, and whether it lives (None: unknown)."""

    text: str = ""
    lives: bool | None = None


class HangDiagnosis(msgspec.Struct, frozen=True):
    """Where the ranks of a silent run stand: a sentence for the message, the kind of the verdict, and the
    frames of all ranks. All are empty if nothing is known. ``ranks`` counts those on all machines.
    ``devices`` says what is known of their devices and collectives.
    """

    sentence: str = ""
    kind: str = ""
    frames: str = ""
    ranks: int = 0
    devices: str = ""


class RunView(msgspec.Struct, frozen=True):
    """What is known of a run. Steps and times are None until there are any.

    ``silent_seconds`` is the time since points arrived, on the clock of a watch; None where it is not known,
    as in a replay. ``ended`` is known as soon as something says so, and ``concluded`` is the same once
    nothing more is expected of the run.
    """

    points: int
    first_step: int | None
    last_step: int | None
    last_time: float | None  # seconds since the epoch, on the log's clock
    pauses: Sequence[float]  # seconds between the last arrivals of points, by any clock
    silent_seconds: float | None
    ended: Ended | None
    printed: Sequence[Printed]  # since the check was last asked
    stopped: Sequence[Stopped]  # since then, too
    inventories: Sequence[Inventory] = ()  # since then, too
    absences: Sequence[Absence] = ()  # since then, too
    unreadable: str | None = None  # why nothing more can be read of its log, as long as that lasts
    failure: str | None = None  # which stage of sentinel fails on the run, and why
    finalized: Ended | None = None
    waits: Sequence[float] = ()  # the pauses by the clock of a watch, which nobody sets
    step_elsewhere: int | None = None  # the last one in any other log of its process
    first_time: float | None = None
    planned_steps: float | None = None
    last_lines: str = ""  # that it printed
    last_entries: Callable[[], Sequence[str]] = (
        tuple  # catalogue entries whose signatures its last words bear
    )
    together: Together | None = None
    process: Callable[[], Writer] = Writer
    process_gone: str = ""  # that its process was seen to end, and how is not known
    hang_diagnosis: Callable[[], HangDiagnosis | None] = HangDiagnosis  # None while that is being found out
    shortages: Callable[[], str] = str  # what the machine is short of
    dead_rank: str | None = None  # "rank 2 of 4 died: ..."; empty if all live, None if that is not known
    ranks: int = 0  # on all machines; 0 if they are not known
    completion: Callable[[], Completion] = Completion
    done_file: str = ""  # a file that says, once somebody makes it, that the run is done
    log_is_removed: Callable[[], bool] = bool
    saved: bool = False  # whether its log is written only when a checkpoint is saved
    siblings: SiblingComparison | None = None  # None if it has no siblings, or is not compared now


class RunFinding(msgspec.Struct, frozen=True):
    """A check's word on a run; without a variant it is clean. ``tag`` tells apart several troubles of one
    check.

    ``index`` numbers what the check judges, lines or points say: the same trouble has the same number
    however often and by whom a run is read.
    """

    index: int
    variant: str | None = None
    severity: Severity | None = None  # one that the variant declares; None for its usual one
    tag: str = ""
    step: int | None = None  # None for the last one
    time: float | None = None
    onset_step: int | None = None  # None for the step of the finding
    onset_time: float | None = None
    evidence: Mapping[str, Any] = msgspec.field(default_factory=dict)
    catalogue: tuple[str, ...] = ()  # in place of the variant's, where not empty


class RunCheck(Declaration, frozen=True, kw_only=True):
    """A rule about a whole run. ``reads`` says what it looks at, ``expects`` what a judged run logs."""

    check: Callable[..., Iterable[RunFinding]]
    reads: str
    expects: Expected | None

    @cached_property
    def parameters(self) -> Mapping[str, Parameter]:
        """Its thresholds by name. Raises TypeError for one without a meaning."""
        return parameters_of(self.check)

    @property
    def demand(self) -> Demand:
        """What a run must log to be judged."""
        return Demand((self.expects.signal,), (), clock=True) if self.expects else Demand((), ())

    def severity(self, finding: RunFinding) -> Severity:
        """Return how bad a finding of the check is."""
        if finding.variant is None:
            return Severity.CLEAN
        declared = self.variants[finding.variant].severities
        severity = finding.severity if finding.severity in declared else declared[0]
        return min(severity, Severity.INFO) if finding.variant in self.informs else severity


def run_check(
    *,
    reads: str,
    expects: Expected | None = None,
    variants: Mapping[str, Variant],
    evidence: Mapping[str, Measure] = NO_EVIDENCE,
    maturity: Maturity = Maturity.PREVIEW,
    hold: int = 1,
    clear: int = 1,
    enabled: bool = True,
    cause: Cause | None = None,
    inhibits: tuple[Cause, ...] = (),
) -> Callable[[Callable[..., Iterable[RunFinding]]], RunCheck]:
    """Declare a run check; see ``RunCheck`` for the fields. Its name comes from the function's."""

    def declare(check: Callable[..., Iterable[RunFinding]]) -> RunCheck:
        return RunCheck(
            **declared(check, maturity, variants, evidence, hold, clear, enabled, cause, inhibits),
            check=check,
            reads=reads,
            expects=expects,
        )

    return declare
