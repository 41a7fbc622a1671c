"""What is stored of streams, field by field in the order in which it is stored."""

from collections.abc import Collection, Mapping, Sequence
from typing import Any, NamedTuple

STATE = 20
"""A number to raise whenever what is stored changes its form. The log of an older state is read again."""


class StreamState(NamedTuple):
    """What is stored of a `Stream`."""

    position: int
    first_points: Sequence[Any] | None  # the tags and the columns of the prologue
    has_names: bool
    profile: str | None
    attempts: Sequence[Any]
    attempt: Sequence[Any]
    tags: Sequence[str]
    plans: Sequence[Any]
    units: dict[str, float]
    signals: dict[str, int]
    inventory_taker: Sequence[Any]
    missing_tags: Sequence[Any]
    tag_context: Sequence[Any]
    role_signals: Mapping[str, str]
    values: Mapping[str, Sequence[float]]
    unmapped_nonfinite: Sequence[Any]
    unmapped_shape: Sequence[Any]
    pace: Sequence[Any]


class AttemptState(NamedTuple):
    """What is stored of an `Attempt`."""

    number: int
    sums: dict[str, list[str]]
    tags: dict[str, list[str]]
    raw_tags: dict[str, list[str]]
    context: Sequence[Any]
    joins: dict[str, Sequence[Any]]
    partners: dict[str, Sequence[Any]]
    series: dict[str, dict[str, Sequence[Any]]]
    earlier: dict[str, dict[str, Sequence[Any]]]
    left_out: dict[str, tuple[int, float]]
    standings: dict[str, Sequence[Any]]
    courses: dict[str, Sequence[Any]]


class SeriesState(NamedTuple):
    """What is stored of a `SeriesHistory`."""

    head_rows: int
    recent_rows: int
    sliced: bool
    plotted: Collection[int]
    rows: int
    position: int
    earlier: Sequence[Any]
    head: Sequence[Any] | None  # None: the recent rows begin with it
    recent: Sequence[Any]
    coarse: Sequence[Any] | None  # None: the recent rows are all rows
    checkpoint: dict[str, Any] | None
