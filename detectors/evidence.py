"""What the numbers are that a rule shows beside its verdict: a label and a unit for each evidence column."""

from collections.abc import Mapping
from enum import StrEnum
from types import MappingProxyType

import msgspec

from sentinel.detectors.signals import Signal


class Unit(StrEnum):
    """What an evidence column counts, and so how a person reads it."""

    SAME = "same"  # the unit of the judged signal
    NONE = "none"  # a pure number
    SHARE = "share"  # 0..1, shown in percent; negative and above 1 where it is a change
    COUNT = "count"  # a whole number of what the label names
    STEP = "step"  # the number of a step
    STEPS = "steps"
    POINTS = "points"
    SECONDS = "seconds"
    NATS = "nats"
    NATS_PER_TOKEN = "nats per token"  # noqa: S105 - no password
    TOKENS = "tokens"
    TOKENS_PER_SECOND = "tokens/s"
    PER_SECOND = "per second"
    GIB = "GiB"
    TEXT = "text"


class Measure(msgspec.Struct, frozen=True):
    """The label and the unit of an evidence column."""

    label: str
    unit: Unit


NO_EVIDENCE: Mapping[str, Measure] = MappingProxyType({})

_UNITS: Mapping[Signal, Unit] = {
    Signal.SKIPPED_STEPS: Unit.STEPS,
    Signal.KL: Unit.NATS_PER_TOKEN,
    Signal.KL_PER_SEQUENCE: Unit.NATS,
    Signal.APPROX_KL: Unit.NATS,
    Signal.ENTROPY: Unit.NATS_PER_TOKEN,
    Signal.ENTROPY_PER_SEQUENCE: Unit.NATS,
    Signal.POLICY_ENTROPY: Unit.NATS,
    Signal.FRAC_REWARD_ZERO_STD: Unit.SHARE,
    Signal.COMPLETION_LENGTH: Unit.TOKENS,
    Signal.COMPLETION_LENGTH_MAX: Unit.TOKENS,
    Signal.TERMINATED_LENGTH: Unit.TOKENS,
    Signal.CLIPPED_COMPLETION_RATIO: Unit.SHARE,
    Signal.CLIP_FRACTION: Unit.SHARE,
    Signal.EXPLORATION_RATE: Unit.SHARE,
    Signal.PAD_FRACTION: Unit.SHARE,
    Signal.NUM_TOKENS: Unit.TOKENS,
    Signal.BATCH_TOKENS: Unit.TOKENS,
    Signal.BATCH_SLOTS: Unit.TOKENS,
    Signal.PREFERENCE_ACCURACY: Unit.SHARE,
    Signal.LOGPS_CHOSEN: Unit.NATS,
    Signal.LOGPS_REJECTED: Unit.NATS,
    Signal.SAMPLING_LOGP_DIFFERENCE: Unit.NATS_PER_TOKEN,
    Signal.EPISODE_LENGTH: Unit.STEPS,
    Signal.VALUE_CLIP_FRACTION: Unit.SHARE,
    Signal.ACCURACY: Unit.SHARE,
    Signal.EVAL_ACCURACY: Unit.SHARE,
    Signal.DEAD_FRACTION: Unit.SHARE,
    Signal.UNCHANGED_SHARE: Unit.SHARE,
    Signal.TRAINING_SHARE: Unit.SHARE,
    Signal.HISTOGRAM_ZERO_SHARE: Unit.SHARE,
    Signal.STEP_TIME: Unit.SECONDS,
    Signal.PACE: Unit.SECONDS,
    Signal.TOKENS_PER_SECOND: Unit.TOKENS_PER_SECOND,
    Signal.THROUGHPUT: Unit.PER_SECOND,
    Signal.MFU: Unit.SHARE,
    Signal.GPU_MEMORY: Unit.GIB,
    Signal.HOST_MEMORY: Unit.GIB,
    Signal.FREE_SHARED_MEMORY: Unit.GIB,
    Signal.TOTAL_STEPS: Unit.STEPS,
    Signal.WARMUP_STEPS: Unit.STEPS,
}
"""The units that `Signal` states. A signal that is not here is a pure number."""

_WORDS = {word.lower(): word for word in ("KL", "GPU", "MFU", "MoE", "EBFT", "CFM")} | {"grad": "gradient"}


_LABELS: Mapping[Signal, str] = {
    Signal.KL_UNKNOWN_UNIT: "KL, unit unknown",
    Signal.FRAC_REWARD_ZERO_STD: "groups without reward spread",
    Signal.REWARD_STD: "standard deviation of the reward",
    Signal.LOGPS_CHOSEN: "log-probability of chosen answers",
    Signal.LOGPS_REJECTED: "log-probability of rejected answers",
    Signal.SAMPLING_LOGP_DIFFERENCE: "difference of log-probabilities",
    Signal.HISTOGRAM_STD: "standard deviation of the histogram",
    Signal.HISTOGRAM_ZERO_SHARE: "share of zeros in the histogram",
    Signal.HISTOGRAM_KURTOSIS: "kurtosis of the histogram",
}
"""Names in words, where those of `Signal` are not plain enough."""


def measure_of(signal: Signal) -> Measure:
    """Return a signal as evidence: its name in words, and its unit."""
    if signal in _LABELS:
        return Measure(_LABELS[signal], _UNITS.get(signal, Unit.NONE))
    words = (_WORDS.get(word, word) for word in signal.value.split("_"))
    return Measure(" ".join(words), _UNITS.get(signal, Unit.NONE))


def logged(*signals: Signal) -> dict[str, Measure]:
    """Return signals that stand beside the judged one in a window, as evidence columns."""
    return {signal.value: measure_of(signal) for signal in signals}
