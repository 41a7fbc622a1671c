"""What a signal is for in a run: an outcome, or a companion of one; and whether more of it is better."""

from enum import StrEnum

import msgspec

from sentinel.detectors.signals import Signal


class Role(StrEnum):
    """What a series is for. The first four may be the outcome of a run, in this order."""

    METRIC = "metric"  # of the task, on held-out data
    REWARD = "reward"
    HELD_OUT_LOSS = "held_out_loss"
    TRAINING_LOSS = "training_loss"
    TRAIN_METRIC = "train_metric"
    KL = "kl"  # to the reference policy
    APPROX_KL = "approx_kl"  # of one update
    CLIP_FRACTION = "clip_fraction"
    ENTROPY = "entropy"
    VALUE_LOSS = "value_loss"
    POLICY_LOSS = "policy_loss"
    GRAD_NORM = "grad_norm"
    CUT_COMPLETIONS = "cut_completions"
    GROUPS_WITHOUT_SPREAD = "groups_without_spread"
    REWARD_SPREAD = "reward_spread"  # within a group
    COMPLETION_LENGTH = "completion_length"
    EXPLAINED_VARIANCE = "explained_variance"
    TASK_REWARD = "task_reward"  # the part of a reward that asks whether the answer is right
    SUCCESS = "success"  # how often an agent reaches its goal, beside its reward
    LEARNING_RATE = "learning_rate"
    DISCRIMINATOR_LOSS = "discriminator_loss"


OUTCOMES = (
    *(Role.METRIC, Role.REWARD, Role.HELD_OUT_LOSS, Role.TRAINING_LOSS),
    Role.DISCRIMINATOR_LOSS,  # says nothing of its rises and falls, but whether it ever told samples apart
)
"""Roles about whose series a claim can be made."""


class Part(msgspec.Struct, frozen=True):
    """The role of a signal, and whether more of it is better."""

    role: Role
    higher_is_better: bool


def _up(role: Role, *signals: Signal) -> dict[Signal, Part]:
    return dict.fromkeys(signals, Part(role, higher_is_better=True))


def _down(role: Role, *signals: Signal) -> dict[Signal, Part]:
    return dict.fromkeys(signals, Part(role, higher_is_better=False))


PARTS: dict[Signal, Part] = {
    **_up(Role.METRIC, Signal.EVAL_ACCURACY, Signal.EVAL_SCORE),
    **_up(Role.METRIC, Signal.MEAN_AVERAGE_PRECISION, Signal.MEAN_INTERSECTION_OVER_UNION),
    **_up(Role.METRIC, Signal.EVAL_QUALITY),
    **_down(Role.METRIC, Signal.EVAL_ERROR_RATE, Signal.FRECHET_INCEPTION_DISTANCE, Signal.EVAL_DISTANCE),
    **_up(Role.REWARD, Signal.EVAL_REWARD, Signal.REWARD),
    **_down(Role.HELD_OUT_LOSS, Signal.EVAL_LOSS, Signal.EVAL_PERPLEXITY),
    **_down(Role.TRAINING_LOSS, Signal.LOSS, Signal.PREFERENCE_LOSS, Signal.PERPLEXITY),
    **_up(Role.TRAIN_METRIC, Signal.ACCURACY, Signal.PREFERENCE_ACCURACY),
    **_up(Role.KL, Signal.KL, Signal.KL_PER_SEQUENCE, Signal.KL_UNKNOWN_UNIT),
    **_up(Role.APPROX_KL, Signal.APPROX_KL),
    **_up(Role.CLIP_FRACTION, Signal.CLIP_FRACTION),
    **_up(Role.ENTROPY, Signal.ENTROPY, Signal.ENTROPY_PER_SEQUENCE, Signal.POLICY_ENTROPY),
    **_up(Role.VALUE_LOSS, Signal.VALUE_LOSS),
    **_up(Role.POLICY_LOSS, Signal.POLICY_LOSS),
    **_up(Role.GRAD_NORM, Signal.GRAD_NORM),
    **_up(Role.CUT_COMPLETIONS, Signal.CLIPPED_COMPLETION_RATIO),
    **_up(Role.GROUPS_WITHOUT_SPREAD, Signal.FRAC_REWARD_ZERO_STD),
    **_up(Role.REWARD_SPREAD, Signal.REWARD_STD),
    **_up(Role.COMPLETION_LENGTH, Signal.COMPLETION_LENGTH),
    **_up(Role.EXPLAINED_VARIANCE, Signal.EXPLAINED_VARIANCE),
    **_up(Role.TASK_REWARD, Signal.TASK_REWARD),
    **_up(Role.SUCCESS, Signal.SUCCESS_RATE),
    **_up(Role.LEARNING_RATE, Signal.LEARNING_RATE),
    **_down(Role.DISCRIMINATOR_LOSS, Signal.DISCRIMINATOR_LOSS),
}
"""The role of each signal that has one."""


OF_AGENTS = Signal.REWARD, Signal.EVAL_REWARD, Signal.POLICY_LOSS, Signal.CLIP_FRACTION
"""Beside one of these a loss is another one than the model's; see `part_of`."""


def part_of(signal: Signal, beside: "frozenset[Signal]") -> Part | None:
    """Return the role of a signal in a run with all these signals; None if it has none.

    Beside a return or a policy's loss, or how much of it is clipped, a loss does not say how well the model
    learns: it is the critic's.
    """
    part = PARTS.get(signal)
    if signal in (Signal.LOSS, Signal.EVAL_LOSS) and not beside.isdisjoint(OF_AGENTS):
        return Part(Role.VALUE_LOSS, higher_is_better=True) if signal is Signal.LOSS else None
    return part
