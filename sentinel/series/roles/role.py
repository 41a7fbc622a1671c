"""What a series is for in its run, in which direction it is better, and how sure that is."""

from enum import IntEnum, StrEnum

import msgspec


class Kind(StrEnum):
    """What a series is for."""

    OUTCOME = "outcome"
    TRAINING_LOSS = "training loss"
    HELD_OUT_LOSS = "held-out loss"
    PART = "part"
    INNER = "inner signal"
    SETTING = "setting"
    COUNTER = "counter"
    TIME = "time or speed"
    SYSTEM = "system"


class Measure(StrEnum):
    """What an outcome or a loss measures."""

    REWARD = "reward"
    METRIC = "metric"
    LOSS = "loss"
    OTHER = "other"


class Split(StrEnum):
    """The data on which a series was measured."""

    TRAIN = "train"
    HELD_OUT = "held-out"
    UNKNOWN = "unknown"


class Direction(StrEnum):
    """In which direction a series is better."""

    HIGHER = "higher"
    LOWER = "lower"
    UNKNOWN = "unknown"


class Unit(StrEnum):
    """The unit of the values."""

    SHARE = "share"
    PERCENT = "percent"
    NATS = "nats"
    OWN = "own"


class Mark(StrEnum):
    """How a series differs from the plain measurement of its name."""

    BEST = "best so far"
    RUNNING = "running mean"
    SUM = "running sum"
    MEMBER = "one of several"
    PAIRWISE = "pairwise"
    MEAN = "mean"
    LIKELIHOOD = "likelihood"
    SOLE = "nothing else like it"
    TERM = "term of a sum"


class Source(IntEnum):
    """What a role rests on; the larger one wins."""

    COMPANY = 1
    NAME = 2
    PROFILE = 3
    USER = 4


MAIN_RANK = 1
"""The rank of a series by which a run may be judged whatever else it logs."""


class Role(msgspec.Struct, frozen=True):
    """The role of one series. Of several outcomes the one with the lowest ``rank`` comes first."""

    kind: Kind
    measure: Measure
    split: Split
    direction: Direction
    unit: Unit
    source: Source
    why: str
    marks: frozenset[Mark] = frozenset()
    rank: int = MAIN_RANK

    @property
    def is_outcome_like(self) -> bool:
        """Whether a reader may judge the run by this series."""
        return self.kind in (Kind.OUTCOME, Kind.TRAINING_LOSS, Kind.HELD_OUT_LOSS)

    @property
    def is_loss(self) -> bool:
        """Whether it is the loss of training or of held-out data."""
        return self.kind in (Kind.TRAINING_LOSS, Kind.HELD_OUT_LOSS)
