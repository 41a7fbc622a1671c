"""An excerpt of a signal, as a plot of an incident needs it: bounded, and in built-in types."""

import msgspec

Number = float | None


class Excerpt(msgspec.Struct, frozen=True):
    """A signal over the attempt, in at most 64 buckets, and its last points.

    ``step``, ``mean``, ``low`` and ``high`` have an entry for each bucket, None where no value is finite. The
    last two are empty for a signal of which only the first value of each bucket is known.
    """

    label: str
    tag: str  # empty for a signal that stands beside the judged one
    step: list[int]
    mean: list[Number]
    low: list[Number]
    high: list[Number]
    last_step: list[int]
    last: list[Number]
