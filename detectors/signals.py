"""What a logged number means: the signals that detectors read, with unit and sign.

A framework's profile maps its tags to these names once; no detector looks at a tag. Where two
frameworks log the same idea in different units, those are two signals here (``kl`` is per token,
``kl_per_sequence`` is not), so that a threshold always meets the unit it was made for.
"""

from enum import StrEnum


class Signal(StrEnum):
    """One meaning; the comment gives unit and sign.

    ``Signal("tag:PATTERN")`` is the signal of a person's own rule: the tags that fit a pattern, in whatever
    unit. It is not listed here, and a tag may have it beside another meaning.
    """

    LOSS = "loss"  # supervised objective that ought to fall; nats or task units, usually >= 0
    POLICY_LOSS = "policy_loss"  # RL surrogate; about 0, either sign, its level means nothing
    PREFERENCE_LOSS = "preference_loss"  # DPO and kin; the usual sigmoid form starts at ln 2
    VALUE_LOSS = "value_loss"  # critic; moving target
    EVAL_LOSS = "eval_loss"
    GENERATOR_LOSS = (
        "generator_loss"  # of adversarial networks; against a moving opponent, so no level is good
    )
    DISCRIMINATOR_LOSS = "discriminator_loss"  # its opponent's; 0 where it tells all samples apart
    DISCRIMINATOR_LOSS_PART = "discriminator_loss_part"  # its loss on true or on false samples alone
    RECONSTRUCTION_LOSS = "reconstruction_loss"  # what a generator fails to restore of its input or target
    LOSS_PART = "loss_part"  # one of the terms whose sum is the loss, where the sum is not logged
    EVAL_LOSS_PART = "eval_loss_part"  # the same of the evaluation loss
    LEARNING_RATE = "learning_rate"  # first parameter group unless the framework logs more
    GRAD_NORM = "grad_norm"  # L2, before clipping
    LAYER_GRAD_NORM = "layer_grad_norm"  # L2 of one layer or parameter; a series each
    LOSS_SCALE = "loss_scale"  # fp16 scaler, a power of two
    SKIPPED_STEPS = "skipped_steps"  # cumulative count of optimizer steps the scaler skipped
    KL = "kl"  # to the reference policy, nats per token
    KL_PER_SEQUENCE = "kl_per_sequence"  # to the reference policy, nats summed over a response
    KL_UNKNOWN_UNIT = "kl_unknown_unit"  # to the reference policy, unit not known
    APPROX_KL = "approx_kl"  # between the old and the new policy of one update, nats
    ENTROPY = "entropy"  # of a language-model policy, nats per token, >= 0
    ENTROPY_PER_SEQUENCE = "entropy_per_sequence"  # nats summed over a response
    POLICY_ENTROPY = "policy_entropy"  # of a discrete or continuous action, nats, may be negative
    ENTROPY_COEFFICIENT = "entropy_coefficient"  # weight of the entropy, as SAC tunes it; > 0
    ACTION_STD = "action_std"  # standard deviation of a Gaussian policy; mean over actions, > 0
    REWARD = "reward"  # mean over the batch, or mean episode return
    REWARD_STD = "reward_std"
    FRAC_REWARD_ZERO_STD = "frac_reward_zero_std"  # share of prompt groups without reward spread
    COMPLETION_LENGTH = "completion_length"  # mean, tokens
    COMPLETION_LENGTH_MAX = "completion_length_max"  # tokens
    TERMINATED_LENGTH = "terminated_length"  # mean over completions that ended by themselves
    CLIPPED_COMPLETION_RATIO = "clipped_completion_ratio"  # share cut off at the length cap, 0..1
    CLIP_FRACTION = "clip_fraction"  # share of policy ratios that PPO clipped, 0..1
    CLIP_RANGE = "clip_range"  # how far PPO lets a policy's ratio go from 1
    EXPLORATION_RATE = "exploration_rate"  # share of actions that are random, 0..1
    PAD_FRACTION = "pad_fraction"  # share of padding in the batch, 0..1
    NUM_TOKENS = "num_tokens"  # cumulative
    BATCH_TOKENS = "batch_tokens"  # valid tokens in this batch
    BATCH_SLOTS = "batch_slots"  # batch size x longest sequence, so that 1 - tokens/slots is padding
    PREFERENCE_MARGIN = "preference_margin"  # reward of the chosen minus the rejected; starts near 0
    PREFERENCE_ACCURACY = "preference_accuracy"  # share of pairs ranked as labelled, 0..1; chance is 0.5
    LOGPS_CHOSEN = "logps_chosen"  # log-probability summed over the chosen response, nats, <= 0
    LOGPS_REJECTED = "logps_rejected"  # the same for the rejected one
    IMPORTANCE_RATIO_MIN = "importance_ratio_min"  # trainer's over sampler's probability; healthy about 1
    IMPORTANCE_RATIO_MEAN = "importance_ratio_mean"
    IMPORTANCE_RATIO_MAX = "importance_ratio_max"
    SAMPLING_LOGP_DIFFERENCE = "sampling_logp_difference"  # mean |trainer - sampler|, nats per token, >= 0
    SAMPLING_KL = "sampling_kl"  # of the trainer's from the sampler's probabilities, nats per token, >= 0
    SAMPLING_PROBABILITY_DIFFERENCE = "sampling_probability_difference"  # mean |trainer - sampler|, 0..1
    SAMPLE_AGE = "sample_age"  # versions of the policy between sampling and use of an answer; mean, >= 0
    TURNS = "turns"  # of a conversation, or calls of tools in it; mean
    TOOL_FAILURE_SHARE = "tool_failure_share"  # of the calls of tools, those that failed, 0..1
    REWARD_FUNCTION = "reward_function"  # mean of one of several reward functions; a series each
    TASK_REWARD = "task_reward"  # the same of one that asks whether the answer is right
    SUCCESS_RATE = "success_rate"  # share of the episodes of training that reach their goal, beside a reward
    EVAL_REWARD = "eval_reward"  # mean return of separate evaluation episodes
    EPISODE_LENGTH = "episode_length"  # mean, environment steps
    REPLAY_SIZE = "replay_size"  # transitions in the replay buffer
    OBSERVATIONS_COUNTED = "observations_counted"  # by the statistics that normalise observations
    EXPLAINED_VARIANCE = "explained_variance"  # of the returns by the critic; 1 is perfect, may be negative
    VALUE_CLIP_FRACTION = "value_clip_fraction"  # share of value predictions that PPO clipped, 0..1
    EBFT_ALIGNMENT = "ebft_alignment"  # twice the similarity of a completion and the reference, -2..2
    EBFT_DIVERSITY = "ebft_diversity"  # twice the similarity of completions of one prompt, -2..2
    EBFT_CFM_LOSS = "ebft_cfm_loss"  # cross-feature matching: squared distance to the reference, >= 0
    MOE_AUXILIARY_LOSS = "moe_auxiliary_loss"  # load balancing of a mixture of experts
    CODEBOOK_PERPLEXITY = "codebook_perplexity"  # exp of the entropy of a quantiser's codes, 1..entries
    MOE_MAX_VIOLATION = "moe_max_violation"  # load of the fullest expert over the mean load, less 1; >= 0
    MAX_ATTENTION_LOGIT = "max_attention_logit"  # largest before the softmax; of all layers or a series each
    MAX_OUTPUT_LOGIT = "max_output_logit"  # largest of a batch of classified samples or tokens
    LOG_PARTITION = "log_partition"  # log Z: logarithm of the sum of the exponentials of the logits; mean
    PERPLEXITY = "perplexity"  # exp of the loss in nats per token; training batches
    EVAL_PERPLEXITY = "eval_perplexity"
    ACCURACY = "accuracy"  # training batches, 0..1
    EVAL_ACCURACY = "eval_accuracy"
    EVAL_SCORE = "eval_score"  # of held-out data, higher is better, 0..1: F1, ROUGE, BLEU, Dice
    EVAL_ERROR_RATE = "eval_error_rate"  # of held-out data, lower is better, 0..1, a WER may be larger
    EVAL_QUALITY = "eval_quality"  # of held-out data, higher is better, in a unit of its own: PSNR, SI-SDR
    EVAL_DISTANCE = "eval_distance"  # of held-out data, lower is better, in a unit of its own: LPIPS, FAD
    MEAN_AVERAGE_PRECISION = "mean_average_precision"  # of a detector on held-out images, 0..1
    MEAN_INTERSECTION_OVER_UNION = "mean_intersection_over_union"  # of a segmenter likewise, 0..1
    FRECHET_INCEPTION_DISTANCE = "frechet_inception_distance"  # FID of generated images, >= 0; 0 is perfect
    UPDATE_RATIO = "update_ratio"  # norm of an optimizer step over norm of its weights; a series a group
    MISSING_TENSORS = "missing_tensors"  # trainable tensors that no optimizer holds
    UNCHANGED_SHARE = "unchanged_share"  # of the tensors, those that the last step left as they were, 0..1
    TRAINING_SHARE = "training_share"  # of the modules, those in training mode at a step, 0..1
    TENSORS_HELD_TWICE = "tensors_held_twice"  # by more than one optimizer or parameter group
    FROZEN_TENSORS_MOVED = "frozen_tensors_moved"  # tensors without a gradient that a step moved
    TENSORS_NEVER_REACHED = "tensors_never_reached"  # trained tensors that had no gradient so far
    UNTIED_TENSORS = "untied_tensors"  # tensors that ought to be one with another and are not
    LOST_UPDATE_SHARE = "lost_update_share"  # of the weights in 16 bits, those that no gradient moved, 0..1
    NARROW_GRADIENTS = "narrow_gradients"  # tensors whose gradient has fewer bits than they
    DIFFERING_RANKS = "differing_ranks"  # ranks whose weights are not those of the first
    FROZEN_STATISTICS_DRIFT = (
        "frozen_statistics_drift"  # of BatchNorm in frozen layers, since the start, >= 0
    )
    GROUPS_LEFT_BEHIND = "groups_left_behind"  # parameter groups whose rate rests while another one moves
    SCHEDULER_OFFSET = "scheduler_offset"  # steps by which the optimizer is ahead of its scheduler
    SCHEDULER_RATE = "scheduler_rate"  # steps of the scheduler for each of the optimizer
    CARRIED_GRADIENT = "carried_gradient"  # norm left of the step before, over that of the new gradient, >= 0
    LOSS_WEIGHT = "loss_weight"  # factor by which the gradient differs from that of the mean loss; 1 is right
    KEPT_GRADIENT = "kept_gradient"  # norm after clipping over norm before, 0..1
    LATE_EARLY_GRADIENT = "late_early_gradient"  # norm in the last layers over that in the first, >= 0
    MASKED_BATCH_SHARE = "masked_batch_share"  # of the batches, those without any label that counts, 0..1
    BATCHES_AGAIN = "batches_again"  # share of batches that came shortly before, 0..1
    BATCHES_IN_OLD_ORDER = "batches_in_old_order"  # share of batches in the order of an earlier epoch, 0..1
    AUGMENTATIONS_AGAIN = "augmentations_again"  # share of batches whose augmentation was drawn before, 0..1
    EQUAL_BATCHES = "equal_batches"  # ranks whose batch is that of another one
    LATENT_STD = "latent_std"  # of scaled latents; about 1
    CONDITION_DROPPED = "condition_dropped"  # share of samples without their condition, 0..1
    LATE_EARLY_LOSS = "late_early_loss"  # of the last quarter of the positions over that of the first
    EVAL_TRAINING_SHARE = (
        "eval_training_share"  # of dropout and BatchNorm, in training mode at evaluation, 0..1
    )
    EVAL_INPUT_SHIFT = "eval_input_shift"  # of evaluation's inputs from training's, deviations, >= 0
    BOXES_KEPT = "boxes_kept"  # share of boxes that suppression keeps, 0..1
    IMAGE_GAIN = "image_gain"  # what the own image lowers the loss by, in proportion
    REFERENCE_DRIFT = "reference_drift"  # of a frozen model's log-probability of one batch, nats, >= 0
    PREDICTION_ENTROPY = "prediction_entropy"  # of predicted classes over that of the labels, >= 0
    WEIGHT_NORM = "weight_norm"  # L2 of all parameters
    DEAD_FRACTION = "dead_fraction"  # share of a layer's outputs that are zero or saturated, 0..1
    HISTOGRAM_STD = "histogram_std"  # of weights, gradients or activations; a series each
    HISTOGRAM_ZERO_SHARE = "histogram_zero_share"  # share of values in buckets that contain or touch 0, 0..1
    HISTOGRAM_KURTOSIS = "histogram_kurtosis"  # 3 for a normal distribution
    STEP_TIME = "step_time"  # seconds per optimizer step, not averaged since the start
    DATA_TIME = "data_time"  # seconds of a step that it waits for data
    DATA_SHARE = "data_share"  # of a step, the share that it waits for data, 0..1
    TOKENS_PER_SECOND = "tokens_per_second"  # per device or in all; only its changes mean something
    THROUGHPUT = "throughput"  # samples, frames or batches per second; only its changes mean something
    MFU = "mfu"  # model FLOPs utilisation, 0..1
    GPU_MEMORY = "gpu_memory"  # in use or peak, GiB
    HOST_MEMORY = "host_memory"  # resident and of the training alone, GiB
    FREE_SHARED_MEMORY = "free_shared_memory"  # of the host, GiB
    OTHER_METRIC = "other_metric"  # all but losses and gradient norms, once they are not finite any more
    FROZEN_METRIC = "frozen_metric"  # metrics of no signal that froze at a value; how many
    LEAPT_METRIC = "leapt_metric"  # metrics of no signal that leapt for good; how many
    PACE = "pace"  # seconds per step by the log's own clocks, where no metric tells the speed
    EPOCH = "epoch"
    TOTAL_STEPS = "total_steps"  # planned optimizer steps
    WARMUP_STEPS = "warmup_steps"  # planned

    @classmethod
    def _missing_(cls, value: object) -> "Signal | None":
        if not isinstance(value, str) or not value.startswith(OWN):
            return None
        own = str.__new__(cls, value)
        own._name_ = own._value_ = value
        return own


UNNAMED = frozenset({Signal.OTHER_METRIC, Signal.FROZEN_METRIC, Signal.LEAPT_METRIC, Signal.PACE})
"""Signals that no training logs itself: what metrics of no other signal do, and what clocks tell."""

OWN = "tag:"
"""How the signal of a person's own rule begins."""


def tag_pattern(signal: Signal) -> str | None:
    """Return the pattern of tags behind the signal of a person's own rule; None for any other signal."""
    return signal.value.removeprefix(OWN) if signal.value.startswith(OWN) else None
