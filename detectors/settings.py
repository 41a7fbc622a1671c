"""What a run's settings say: the names under which detectors read them, with unit.

Frameworks call the same setting by many names; ``sentinel`` maps them to these once. A setting that a
run does not state, or states twice with different values, is null for a detector.
"""

from collections.abc import Mapping
from enum import StrEnum


class Setting(StrEnum):
    """One meaning; the comment gives unit and range. Those in ``CHOICES`` are text, the others numbers."""

    TOTAL_STEPS = "total_steps"  # planned optimizer steps; null in rows beyond them
    WARMUP_STEPS = "warmup_steps"  # planned, optimizer steps
    WARMUP_RATIO = "warmup_ratio"  # planned, share of the total steps, 0..1
    EPOCHS = "epochs"  # planned passes over the data; total_steps overrides them
    STEPS_PER_EPOCH = "steps_per_epoch"  # batches in one pass
    BATCH_SIZE = "batch_size"  # samples in one forward pass of one process
    ACCUMULATION_STEPS = "accumulation_steps"  # forward passes per optimizer step
    WORLD_SIZE = "world_size"  # processes that train together
    LOGGING_STEPS = "logging_steps"  # steps between two logged points
    PEAK_LEARNING_RATE = "peak_learning_rate"  # the highest of the schedule
    MIN_LEARNING_RATE = "min_learning_rate"  # where the schedule ends, >= 0
    SCHEDULER = "scheduler"  # text, shape of the learning rate after warm-up
    OPTIMIZER = "optimizer"  # text
    WEIGHT_DECAY = "weight_decay"  # >= 0
    MAX_GRAD_NORM = "max_grad_norm"  # L2 norm at which gradients are clipped; 0 says that they are not
    PRECISION = "precision"  # text, of the forward pass
    LABEL_SMOOTHING = "label_smoothing"  # share of the target, 0..1
    NUM_CLASSES = "num_classes"  # of a classifier, >= 2
    VOCAB_SIZE = "vocab_size"  # tokens that a language model predicts among, >= 2
    MAX_COMPLETION_LENGTH = "max_completion_length"  # tokens at which a generated answer is cut off
    NUM_GENERATIONS = "num_generations"  # answers per prompt
    BETA = "beta"  # coefficient of the KL to the reference policy, or DPO's; 0 says that there is none


CHOICES: Mapping[Setting, tuple[str, ...]] = {
    Setting.SCHEDULER: (
        *("constant", "linear", "cosine", "restarts", "polynomial", "exponential", "step", "plateau"),
        *("one-cycle", "inverse-sqrt", "warmup-stable-decay", "other"),
    ),
    Setting.OPTIMIZER: ("adamw", "adam", "sgd", "rmsprop", "adafactor", "lion", "muon", "other"),
    Setting.PRECISION: ("float32", "float16", "bfloat16", "float8"),
}
"""The texts that a setting may be; frameworks' own spellings are mapped to these."""
