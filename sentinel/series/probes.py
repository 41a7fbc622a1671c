"""Reads the names of probes: what people measure of each layer, and of the memory of a device.

The name of a probe and that of a layer stand in either order, with any separators: ``grad_norm/fc1``,
``train/layer0.gradNorm``, ``dead_relu_conv1``.
"""

from sentinel.common.lazy_pattern import lazy_pattern
from sentinel.detectors.signals import Signal
from sentinel.series.patterns import Meaning
from sentinel.series.tag_words import EVAL, FILLERS, TRAIN, spelled, words_of

_SEGMENT = lazy_pattern(r"[/.:]")
_LAYER_NUMBER = lazy_pattern(r"\d+")

_SPELLINGS = {
    "relus": "relu",
    "units": "unit",
    "neuron": "unit",
    "neurons": "unit",
    "zeros": "zero",
    "activations": "activation",
    "updates": "update",
    "ratios": "ratio",
    "weights": "weight",
    "parameter": "weight",
    "parameters": "weight",
    "param": "weight",
    "params": "weight",
    "data": "weight",
}
"""How probes spell their words, beyond the spellings of all tags."""

_OF_LAYERS = {
    "grad norm": Signal.LAYER_GRAD_NORM,
    "grad norm l 2": Signal.LAYER_GRAD_NORM,
    "update weight": Signal.UPDATE_RATIO,
    "update weight ratio": Signal.UPDATE_RATIO,
    "update ratio": Signal.UPDATE_RATIO,
    "dead": Signal.DEAD_FRACTION,
    "dead fraction": Signal.DEAD_FRACTION,
    "dead relu": Signal.DEAD_FRACTION,
    "dead relu fraction": Signal.DEAD_FRACTION,
    "dead unit": Signal.DEAD_FRACTION,
    "dead unit fraction": Signal.DEAD_FRACTION,
    "dead relu unit fraction": Signal.DEAD_FRACTION,
    "zero fraction": Signal.DEAD_FRACTION,
    "relu zero": Signal.DEAD_FRACTION,
    "relu zero fraction": Signal.DEAD_FRACTION,
    "activation zero": Signal.DEAD_FRACTION,
    "activation zero fraction": Signal.DEAD_FRACTION,
}
_PROBES = {frozenset(words.split()): Meaning(signal) for words, signal in _OF_LAYERS.items()}

_OF_THE_TRAINING = {
    "params/missing_from_optimizer": Meaning(Signal.MISSING_TENSORS),
    "params/unchanged_after_step": Meaning(Signal.UNCHANGED_SHARE),
    "model/training": Meaning(Signal.TRAINING_SHARE),
    "params/held_twice": Meaning(Signal.TENSORS_HELD_TWICE),
    "params/frozen_moved": Meaning(Signal.FROZEN_TENSORS_MOVED),
    "params/untied": Meaning(Signal.UNTIED_TENSORS),
    "params/lost_updates": Meaning(Signal.LOST_UPDATE_SHARE),
    "ranks/differing_weights": Meaning(Signal.DIFFERING_RANKS),
    "ranks/equal_batches": Meaning(Signal.EQUAL_BATCHES),
    "bn/frozen_stat_drift": Meaning(Signal.FROZEN_STATISTICS_DRIFT),
    "optim/groups_left_behind": Meaning(Signal.GROUPS_LEFT_BEHIND),
    "optim/scheduler_offset": Meaning(Signal.SCHEDULER_OFFSET),
    "optim/scheduler_rate": Meaning(Signal.SCHEDULER_RATE),
    "loss/weight": Meaning(Signal.LOSS_WEIGHT),
    "loss/late_early_ratio": Meaning(Signal.LATE_EARLY_LOSS),
    "grad/norm_before_clipping": Meaning(Signal.GRAD_NORM),
    "grad/never": Meaning(Signal.TENSORS_NEVER_REACHED),
    "grad/fewer_bits": Meaning(Signal.NARROW_GRADIENTS),
    "grad/carried_over": Meaning(Signal.CARRIED_GRADIENT),
    "grad/kept_share": Meaning(Signal.KEPT_GRADIENT),
    "grad/late_early_ratio": Meaning(Signal.LATE_EARLY_GRADIENT),
    "data/batches_all_masked": Meaning(Signal.MASKED_BATCH_SHARE),
    "data/batches_again": Meaning(Signal.BATCHES_AGAIN),
    "data/batches_in_old_order": Meaning(Signal.BATCHES_IN_OLD_ORDER),
    "data/augmentations_again": Meaning(Signal.AUGMENTATIONS_AGAIN),
    "data/condition_dropped": Meaning(Signal.CONDITION_DROPPED),
    "data/eval_input_shift": Meaning(Signal.EVAL_INPUT_SHIFT),
    "latents/std": Meaning(Signal.LATENT_STD),
    "model/training_at_evaluation": Meaning(Signal.EVAL_TRAINING_SHARE),
    "eval/boxes_kept": Meaning(Signal.BOXES_KEPT),
    "eval/prediction_entropy": Meaning(Signal.PREDICTION_ENTROPY),
    "host/rss": Meaning(Signal.HOST_MEMORY),
    "host/shm_free": Meaning(Signal.FREE_SHARED_MEMORY),
    "logits/log_z": Meaning(Signal.LOG_PARTITION),
    "logits/max": Meaning(Signal.MAX_OUTPUT_LOGIT),
    "rl/replay_size": Meaning(Signal.REPLAY_SIZE),
    "rl/observation_norm_count": Meaning(Signal.OBSERVATIONS_COUNTED),
    "vlm/image_gain": Meaning(Signal.IMAGE_GAIN),
    "dpo/reference_drift": Meaning(Signal.REFERENCE_DRIFT),
}
"""Numbers of `sentinel.probe` that speak of the training as a whole."""

_OF_ALL = frozenset({"total", "global", "all", "norm", "mean", "max", "min", "clip", "clipped"})
"""What may follow the name of a probe and is no layer."""

_LAYERS = (
    {"layer", "layers", "block", "blocks", "stage", "stem", "backbone", "body", "neck", "head", "classifier"}
    | {"conv", "fc", "linear", "dense", "encoder", "decoder", "embed", "embedding", "embeddings", "emb"}
    | {"attn", "attention", "mlp", "ffn", "lstm", "gru", "rnn", "weight", "bias", "features", "proj"}
)
"""Words that name layers."""

_PLACES = FILLERS | TRAIN | {"debug", "monitor", "diagnostics", "probe", "probes", "health", "per", "to"}

_GIB = {"gib": 1.0, "gb": 1.0, "mib": 2.0**-10, "mb": 2.0**-10, "kib": 2.0**-20, "kb": 2.0**-20}
_GIB |= dict.fromkeys(("bytes", "byte"), 2.0**-30)
_MEMORY = frozenset({"memory", "mem", "vram"})
_AROUND_MEMORY = (
    _MEMORY
    | {"gpu", "cuda", "device", "allocated", "alloc", "reserved", "active", "peak", "max", "used", "usage"}
    | {"in", "use", "system", "perf", "performance", "resource", "resources"}
)


def probe(tag: str) -> Meaning | None:
    """Return the meaning of a tag that names a probe; None if it names none."""
    return _OF_THE_TRAINING.get(tag) or _group_probe(tag) or _layer_probe(tag) or _memory(tag)


def _group_probe(tag: str) -> Meaning | None:
    """Return the meaning of a tag in a group with the name of a probe: ``debug/zero_frac/a``."""
    names = [_content(name) for name in _SEGMENT.split(tag)]
    while names and names[0] <= _PLACES:
        names = names[1:]
    inner = frozenset().union(*names[1:])
    meaning = _PROBES.get(names[0] - _PLACES) if names and inner and inner.isdisjoint(EVAL) else None
    is_of_all = meaning is not None and meaning.signal is Signal.LAYER_GRAD_NORM and inner <= _OF_ALL
    return None if is_of_all else meaning


def _layer_probe(tag: str) -> Meaning | None:
    """Return the meaning of a probe beside words that name a layer: ``layer0_grad_norm``."""
    content = {word for word in _content(tag) if not _LAYER_NUMBER.fullmatch(word)}
    if content.isdisjoint(_LAYERS) or not content.isdisjoint(EVAL):
        return None
    return _PROBES.get(frozenset(content - _LAYERS - _PLACES))


def _memory(tag: str) -> Meaning | None:
    """Return the meaning of a tag of memory that states its unit: ``gpu_mem_gb``."""
    content = {word for word in _content(tag) if not _LAYER_NUMBER.fullmatch(word)}
    units = content & _GIB.keys()
    if content.isdisjoint(_MEMORY) or len(units) != 1 or content - units - _AROUND_MEMORY - _PLACES:
        return None
    return Meaning(Signal.GPU_MEMORY, _GIB[units.pop()])


def _content(name: str) -> frozenset[str]:
    """Return the words of a name in one spelling."""
    return frozenset(_SPELLINGS.get(word, word) for word in spelled(words_of(name)))
