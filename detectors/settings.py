"""What a run's settings say: the names under which detectors read them, with unit.

Frameworks call the same setting by many names; ``sentinel`` maps them to these once. A setting that a
run does not state, or states twice with different values, is null for a detector.
"""

from collections.abc import Mapping
from enum import StrEnum


class Setting(StrEnum):
    """One meaning; the comment gives unit and range.

    Those in ``CHOICES`` are text, the others numbers. A switch is 1 where it is on and 0 where it is off.
    """

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
    MODEL_FAMILY = "model_family"  # text
    MODEL_DTYPE = "model_dtype"  # text, in which the weights are held
    LOSS = "loss"  # text, the loss function
    ADAM_EPSILON = "adam_epsilon"
    OPTIMIZER_KERNEL = "optimizer_kernel"  # text, how the optimizer's step is computed
    SCHEDULE_STEPS = "schedule_steps"  # after which the learning rate has decayed, optimizer steps
    CLIP_ALGORITHM = "clip_algorithm"  # text, how gradients are clipped
    NAN_FILTER = "nan_filter"  # switch: the logger replaces NaN by the mean of other losses
    EVALUATION = "evaluation"  # text, when the run evaluates
    TRANSFORMERS_VERSION = "transformers_version"  # 4.046 is 4.46
    TORCH_VERSION = "torch_version"  # 1.009 is 1.9
    DATASET_SIZE = "dataset_size"  # training samples
    WORKERS = "workers"  # processes that load data
    DROP_LAST = "drop_last"  # switch: an incomplete last batch is left out
    IGNORE_INDEX = "ignore_index"  # label that the loss leaves out, >= 0
    SYNC_BATCHNORM = "sync_batchnorm"  # switch
    PADDING_SIDE = "padding_side"  # text, of the tokenizer
    PADDING_ID = "padding_id"  # of the token
    END_ID = "end_id"  # of the token that ends a sequence
    PACKING = "packing"  # switch: several documents in one row
    ATTENTION = "attention"  # text, the implementation
    MAX_SEQUENCE_LENGTH = "max_sequence_length"  # tokens of a training row
    MAX_POSITIONS = "max_positions"  # tokens of context that the model was built for
    ROPE_FACTOR = "rope_factor"  # by which rotary positions are stretched
    ROPE_TYPE = "rope_type"  # text, how they are stretched
    LORA_RANK = "lora_rank"
    TARGET_MODULES = "target_modules"  # switch: the modules to adapt are named
    MODULES_TO_SAVE = "modules_to_save"  # switch: modules to train in full beside the adapter are named
    TEMPERATURE = "temperature"  # of sampling
    TOP_P = "top_p"  # of sampling
    TOP_K = "top_k"  # of sampling
    GENERATION_BATCH_SIZE = "generation_batch_size"  # answers that are generated together
    MASK_TRUNCATED = "mask_truncated"  # switch: answers that were cut off do not count
    VLLM_SYNC_INTERVAL = "vllm_sync_interval"  # optimizer steps between two updates of the sampler
    OFF_POLICY_MASK = "off_policy_mask"  # threshold beyond which stale samples do not count
    PPO_EPOCHS = "ppo_epochs"  # passes over one batch of samples
    CLIP_RANGE = "clip_range"  # of the policy ratio
    ADAPTIVE_KL = "adaptive_kl"  # switch: the KL coefficient follows a target
    NORMALIZE_ADVANTAGES = "normalize_advantages"  # switch
    USE_EMA = "use_ema"  # switch: a running average of the weights is kept
    SNR_GAMMA = "snr_gamma"  # of Min-SNR weighting
    PREDICTION_TYPE = "prediction_type"  # text, what a diffusion model predicts
    CONDITION_DROPOUT = "condition_dropout"  # share of samples without a condition, 0..1
    ZERO_SNR = "zero_snr"  # switch: the noise schedule ends without signal
    TIMESTEP_SPACING = "timestep_spacing"  # text, of the sampler
    INFERENCE_STEPS = "inference_steps"  # of the sampler
    CUSTOM_VAE = "custom_vae"  # switch: another VAE than the model's own
    LATENT_SCALE = "latent_scale"  # by which latents are multiplied
    FREEZE_VISION = "freeze_vision"  # switch
    FREEZE_LANGUAGE = "freeze_language"  # switch
    FREEZE_PROJECTOR = "freeze_projector"  # switch
    PROJECTOR_LEARNING_RATE = "projector_learning_rate"
    DEEPSPEED = "deepspeed"  # switch
    ZERO_STAGE = "zero_stage"  # 0..3
    FSDP = "fsdp"  # switch
    FSDP_VERSION = "fsdp_version"  # 1 or 2
    ASYNC_PREFETCH = "async_prefetch"  # switch: answers are generated while the last ones are trained on
    USE_REENTRANT = "use_reentrant"  # switch, of gradient checkpointing
    SAVE_ONLY_MODEL = "save_only_model"  # switch: checkpoints hold no optimizer, scheduler and RNG state
    PRETRAINED = "pretrained"  # switch: training begins with weights that were trained before
    AUGMENTATION = "augmentation"  # switch: samples are varied at random
    BATCH_NORM = "batch_norm"  # switch: the model has BatchNorm
    IGNORE_DATA_SKIP = "ignore_data_skip"  # switch: a resumed run reads the data from the start


CHOICES: Mapping[Setting, tuple[str, ...]] = {
    Setting.SCHEDULER: (
        *("constant", "linear", "cosine", "restarts", "polynomial", "exponential", "step", "plateau"),
        *("one-cycle", "inverse-sqrt", "warmup-stable-decay", "other"),
    ),
    Setting.OPTIMIZER: ("adamw", "adam", "sgd", "rmsprop", "adafactor", "lion", "muon", "other"),
    Setting.PRECISION: ("float32", "float16", "bfloat16", "float8"),
    Setting.MODEL_DTYPE: ("float32", "float16", "bfloat16"),
    Setting.MODEL_FAMILY: (
        *("t5", "llama", "gemma", "qwen", "mistral", "gpt", "bert", "vit", "vision-language"),
        "convolutional",
    ),
    Setting.LOSS: ("cross-entropy", "bce-with-logits", "bce", "nll", "mse"),
    Setting.OPTIMIZER_KERNEL: ("fused", "foreach"),
    Setting.CLIP_ALGORITHM: ("norm", "value", "adaptive"),
    Setting.EVALUATION: ("never", "steps", "epoch"),
    Setting.PADDING_SIDE: ("left", "right"),
    Setting.ATTENTION: ("eager", "sdpa", "flash", "flex"),
    Setting.ROPE_TYPE: ("linear", "dynamic", "yarn"),
    Setting.PREDICTION_TYPE: ("epsilon", "velocity", "sample", "flow"),
    Setting.TIMESTEP_SPACING: ("leading", "linspace", "trailing"),
}
"""The texts that a setting may be; frameworks' own spellings are mapped to these."""
