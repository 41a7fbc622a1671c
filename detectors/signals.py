"""What a logged number means: the signals that detectors read, with unit and sign.

A framework's profile maps its tags to these names once; no detector looks at a tag. Where two
frameworks log the same idea in different units, those are two signals here (``kl`` is per token,
``kl_per_sequence`` is not), so that a threshold always meets the unit it was made for.
"""

from enum import StrEnum


class Signal(StrEnum):
    """One meaning; the comment gives unit and sign."""

    LOSS = "loss"  # supervised objective that ought to fall; nats or task units, usually >= 0
    POLICY_LOSS = "policy_loss"  # RL surrogate; about 0, either sign, its level means nothing
    PREFERENCE_LOSS = "preference_loss"  # DPO and kin; starts at ln 2
    VALUE_LOSS = "value_loss"  # critic; moving target
    EVAL_LOSS = "eval_loss"
    LEARNING_RATE = "learning_rate"  # first parameter group unless the framework logs more
    GRAD_NORM = "grad_norm"  # L2, before clipping
    LOSS_SCALE = "loss_scale"  # fp16 scaler, a power of two
    SKIPPED_STEPS = "skipped_steps"  # cumulative count of optimizer steps the scaler skipped
    KL = "kl"  # to the reference policy, nats per token
    KL_PER_SEQUENCE = "kl_per_sequence"  # to the reference policy, nats summed over a response
    KL_UNKNOWN_UNIT = "kl_unknown_unit"  # to the reference policy, unit not known
    APPROX_KL = "approx_kl"  # between the old and the new policy of one update, nats
    ENTROPY = "entropy"  # of a language-model policy, nats per token, >= 0
    ENTROPY_PER_SEQUENCE = "entropy_per_sequence"  # nats summed over a response
    POLICY_ENTROPY = "policy_entropy"  # of a discrete or continuous action, nats, may be negative
    REWARD = "reward"  # mean over the batch, or mean episode return
    REWARD_STD = "reward_std"
    FRAC_REWARD_ZERO_STD = "frac_reward_zero_std"  # share of prompt groups without reward spread
    COMPLETION_LENGTH = "completion_length"  # mean, tokens
    COMPLETION_LENGTH_MAX = "completion_length_max"  # tokens
    TERMINATED_LENGTH = "terminated_length"  # mean over completions that ended by themselves
    CLIPPED_COMPLETION_RATIO = "clipped_completion_ratio"  # share cut off at the length cap, 0..1
    CLIP_FRACTION = "clip_fraction"  # share of policy ratios that PPO clipped, 0..1
    PAD_FRACTION = "pad_fraction"  # share of padding in the batch, 0..1
    NUM_TOKENS = "num_tokens"  # cumulative
    BATCH_TOKENS = "batch_tokens"  # valid tokens in this batch
    BATCH_SLOTS = "batch_slots"  # batch size x longest sequence, so that 1 - tokens/slots is padding
    ACCURACY = "accuracy"  # training batches, 0..1
    EVAL_ACCURACY = "eval_accuracy"
    EPOCH = "epoch"
    TOTAL_STEPS = "total_steps"  # planned optimizer steps
    WARMUP_STEPS = "warmup_steps"  # planned
