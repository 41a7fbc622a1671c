"""What a declaration of a detector says of its look back, and of the ways in which its rule breaks."""

import msgspec

from sentinel.detectors.severity import WARNING, Severity


class History(msgspec.Struct, frozen=True):
    """How far a verdict looks back, in rows of the judged series. Nothing else may decide it.

    recent: the last n rows before the judged one. head: the first n rows of the attempt.
    earlier: the last n rows of the attempt before, or of the last one that had any. They are never judged,
    and their index is negative: -1 is the last row before the restart.
    coarse: at most 64 buckets over the attempt, as of the last checkpoint (four per doubling of
    the row count, from row 256 on; empty before).
    """

    recent: int = 0
    head: int = 0
    earlier: int = 0
    coarse: bool = False

    def with_at_least(self, other: "History") -> "History":
        """Return what looks as far back as both."""
        return History(
            max(self.recent, other.recent),
            max(self.head, other.head),
            max(self.earlier, other.earlier),
            self.coarse or other.coarse,
        )


class Variant(msgspec.Struct, frozen=True):
    """One way in which a detector's rule breaks: its sentence and the likely causes, likeliest first.

    ``message`` is a format string over the evidence columns, ``value``, ``step``, the parameters, and
    ``lasted``: the steps and the time since the onset in words, such as "218 steps (7 min)".
    ``severities`` are those that its findings can have, the usual one first. A question is ``asked_once``: no
    reminder follows. ``first_step`` is the first thing to do, where the page begins with another one.
    """

    message: str
    catalogue: tuple[str, ...]
    severities: tuple[Severity, ...] = (WARNING,)
    no_reminder: bool = False
    first_step: str = ""
