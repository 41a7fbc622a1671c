"""The columns of the frames that go into and come out of a detector.

WINDOW is what a detector reads. Rows belong to one *series* (one tag of one attempt of one run), are sorted
by ``index`` inside it, and hold the judged signal in ``value``. Beside it stand one column for every signal
that the detector declared in ``needs`` (never null), one for each of its ``uses`` (null where nothing is
known yet; see `Last` and what follows it), and one for each of its ``settings`` (null where the run's
settings do not say; text for those in ``sentinel.detectors.settings.CHOICES``). A detector with coarse
history also finds the three list columns, one that asked for points that are not finite the column ``raw``,
and one that is asked again when the run is over the column ``ended``.

FINDINGS is what it returns: a row for every row that it judged, clean ones included, because a clean
verdict is what resolves an incident. A row with a variant and no severity has one of its variant's (see
`severity_of`). A row without either has no verdict; `skipped` says why the rule could not judge it,
and is null if the value lies between the two thresholds of a hysteresis. All further columns are evidence.

`Last` and what follows it are what a detector may ask to know of other signals beside a row. A point counts
beside a row if it precedes the row in the log and has an earlier step: points of the row's own step may not
be logged yet when the row is judged. Where a signal has several tags, the first that appeared stands for it.
A column is null in rows for which no point counts.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence

import msgspec
import polars as pl

from sentinel.detectors.interims import AT_ONCE
from sentinel.detectors.severity import SEVERITY_COLUMNS, Severity
from sentinel.detectors.signals import Signal

SERIES = "series"
INDEX = "index"
STEP = "step"
TIME = "time"
NEW = "new"
VALUE = "value"
RAW = "raw"
CONTINUES = "continues"
ENDED = "ended"
SUMS_UP = "sums_up"
"""Rows in which the run so far is judged as a whole: the last one of a run that is over, and interims."""
OVER = "is_over"
"""The last row of a run that is over. For a rule that is asked at stages `ENDED` holds there as well."""
STAGE = "stage"
"""The stage of the plan that is done in an interim, one of `sentinel.detectors.interims.STAGES`; or null."""
GROWN = "has_grown"
"""A column of a rule where it has one: to how many times its length the log has to have grown while all
interims showed what is found in this one. None is too many for one that a run that is over alone can tell."""
SIGNAL = "signal"
SEVERITY = "severity"
VARIANT = "variant"
ONSET = "onset_step"
ABOVE = "bad_above"
BELOW = "bad_below"
SKIPPED = "skip_reason"
EXCUSED = "excused"
"""A column of a rule where it has one: what is found of the row is right, so no score card speaks either."""
LOOK = "look"
INTERIM = "interim"

WINDOW: dict[str, pl.DataType] = {
    SERIES: pl.UInt32(),  # which series; verdicts never mix two of them
    SIGNAL: pl.String(),  # which of the judged signals this series carries
    INDEX: pl.Int64(),  # position in the series, from 0; negative in the attempt before
    STEP: pl.Int64(),  # as the framework counts
    TIME: pl.Float64(),  # seconds since the epoch; null where the log has no times
    NEW: pl.Boolean(),  # rows to be judged now; the others are history
    CONTINUES: pl.Boolean(),  # whether the attempt goes on with a loss that had fallen
    VALUE: pl.Float64(),  # finite; null in a row of a point that is not, see RAW
}

COARSE: dict[str, pl.DataType] = {
    "coarse_low": pl.List(pl.Float64()),  # smallest value of each bucket of the attempt so far
    "coarse_mean": pl.List(pl.Float64()),
    "coarse_high": pl.List(pl.Float64()),
}
"""In the first row of each series that is judged now, which stands for all of them; else null."""

EARLY_ROWS = 50
"""First rows of a series that are judged one by one, however rare the turns of a detector are."""

FINDINGS: dict[str, pl.DataType] = {
    SERIES: pl.UInt32(),
    INDEX: pl.Int64(),
    STEP: pl.Int64(),
    SEVERITY: pl.Int8(),  # sentinel.detectors.api.Severity; 0 is a clean verdict, null none
    VARIANT: pl.String(),  # a key of the detector's variants; null where clean
    ONSET: pl.Int64(),  # first step of the trouble, where the rule knows it; else null
    ABOVE: pl.Float64(),  # points above it belong to the trouble; null where the rule knows no such value
    BELOW: pl.Float64(),  # the same of points below it
    SKIPPED: pl.String(),  # sentinel.detectors.skip_reason.HeldBack: why the row was not judged; else null
    LOOK: pl.Int8(),  # sentinel.detectors.reading.looks.Look: what score cards say; null where none was read
    INTERIM: pl.Float64(),  # to how many times its length the log has to have grown while the run so far as a
    # whole showed what is found; 0 if it shows nothing, null where that is not judged
}


BLANKS = [pl.lit(None, dtype=kind).alias(name) for name, kind in FINDINGS.items() if name not in WINDOW]
"""The columns of FINDINGS that a rule need not have, as they are then."""

CASTS = [pl.col(name).cast(kind) for name, kind in FINDINGS.items()]


def severity_columns(declared: Mapping[str, Sequence[Severity]]) -> dict[str, Severity]:
    """Return the columns that a rule may have, the worst severity first: of variants with several ones."""
    several = {severity for severities in declared.values() if len(severities) > 1 for severity in severities}
    return {column: severity for severity, column in SEVERITY_COLUMNS.items() if severity in several}


def severity_of(declared: Mapping[str, Sequence[Severity]]) -> pl.Expr:
    """Return how bad a finding is, null for a row without a variant.

    It has the worst severity that its variant declares and that one of the `severity_columns` says, else the
    first one that its variant declares. ``declared`` has the severities of each variant.
    """
    usual = {name: severities[0] for name, severities in declared.items()}
    return pl.coalesce(
        *(
            pl.when(
                pl.col(column) & pl.col(VARIANT).is_in([n for n, s in declared.items() if severity in s])
            ).then(severity)
            for column, severity in severity_columns(declared).items()
        ),
        pl.col(VARIANT).replace_strict(usual, default=None, return_dtype=FINDINGS[SEVERITY]),
    )


def capped(informs: Collection[str]) -> pl.Expr:
    """Return how bad a finding is if these variants only inform."""
    is_quiet = pl.col(VARIANT).is_in([*informs]) & (pl.col(SEVERITY) > Severity.INFO)
    return (
        pl.when(is_quiet).then(pl.lit(Severity.INFO, FINDINGS[SEVERITY])).otherwise(SEVERITY).alias(SEVERITY)
    )


def is_concluded() -> pl.Expr:
    """Return whether a run is over, or done with a stage of its plan."""
    return pl.col(OVER) | pl.col(STAGE).is_not_null()


def grown(at_once: pl.Expr, times: Mapping[str, float]) -> pl.Expr:
    """Return the column `GROWN` of a rule that has told its verdicts: the variants among ``times`` need these
    where they neither hold ``at_once`` nor at a stage of the plan.
    """
    is_sure = at_once.fill_null(value=False) | pl.col(STAGE).is_not_null()
    needed = pl.col(VARIANT).replace_strict(times, default=AT_ONCE, return_dtype=pl.Float64)
    return pl.when(is_sure).then(AT_ONCE).otherwise(needed).alias(GROWN)


def at_interims(claims: Collection[str], *, at_all: bool) -> pl.Expr:
    """Return to how many times its length a log has to have grown while the run so far as a whole showed what
    a rule, or a card of ``claims``, pages of; 0 where the rule does not page, null in rows in which it does
    not judge the whole.

    It judges it ``at_all`` interims, or at the stages of the plan alone.
    """
    pages = ~pl.col(OVER) & (pl.col(SEVERITY) >= Severity.WARNING)
    judges = at_all | pl.col(OVER) | pl.col(STAGE).is_not_null()
    grown_to = pl.when(pages & (judges | pl.col(VARIANT).is_in([*claims]))).then(GROWN)
    return pl.when(SUMS_UP).then(pl.coalesce(grown_to, pl.when(judges).then(0.0))).alias(INTERIM)


class Last(msgspec.Struct, frozen=True):
    """The last value, in a column with the signal's name. A bare Signal in ``uses`` means this."""

    signal: Signal

    @property
    def column(self) -> str:
        """The column's name."""
        return self.signal.value


class First(msgspec.Struct, frozen=True):
    """The first value of the attempt, in the column ``SIGNAL_first``."""

    signal: Signal

    @property
    def column(self) -> str:
        """The column with the first value of the signal."""
        return f"{self.signal}_first"


class Mean(msgspec.Struct, frozen=True):
    """The mean of the points since the series' row before, in the column ``SIGNAL_mean``.

    Every point counts beside one row at most. Points of the first row reach back to the attempt's begin.
    """

    signal: Signal

    @property
    def column(self) -> str:
        """The column with the mean of the signal."""
        return f"{self.signal}_mean"


class Every(msgspec.Struct, frozen=True):
    """The last value of each tag of the signal, in the list column ``SIGNAL_every``.

    Tags stand in the order of their appearance, 128 of them at most. A tag without a value is null; the
    list ends with the last tag that has one, and is empty where none has.
    """

    signal: Signal

    @property
    def column(self) -> str:
        """The column with the values of all tags of the signal."""
        return f"{self.signal}_every"


class Standing(msgspec.Struct, frozen=True):
    """How an outcome stands, in the column ``SIGNAL_standing``: the share of its gain that it has.

    1 is at its best, 0 at its start, and less is below it; see `sentinel.detectors.reading.standing`. It is
    as of the last look, and null before the first one.
    """

    signal: Signal

    @property
    def column(self) -> str:
        """The column's name."""
        return f"{self.signal}_standing"

    @staticmethod
    def tag(tag: str) -> str:
        """Return the name of what a tag's standing is kept under; no log has such a tag."""
        return f"\x00standing of {tag}"


class Course(msgspec.Struct, frozen=True):
    """The whole attempt in equal units, 64 at most, in the list column ``SIGNAL_course``.

    It is known when a run is over: in its last row, in which a detector that is asked at the end is asked
    again. All points count, also those of the last step. Empty if the signal was not logged, and null in
    other rows.
    """

    signal: Signal

    @property
    def column(self) -> str:
        """The column's name."""
        return f"{self.signal}_course"


Use = Last | First | Mean | Every | Standing | Course


def numbers(uses: Iterable[Use]) -> list[Last | First | Mean | Standing]:
    """Return those that are a number in each row."""
    return [use for use in uses if not isinstance(use, Every | Course)]


def lists(uses: Iterable[Use]) -> list[Every]:
    """Return those that are a list in each row."""
    return [use for use in uses if isinstance(use, Every)]


def courses(uses: Iterable[Use]) -> list[Course]:
    """Return those that are the course of an attempt."""
    return [use for use in uses if isinstance(use, Course)]
