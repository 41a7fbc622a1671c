"""What a tag means beside the other tags of its stream, where its name alone does not say it."""

from collections.abc import Callable, Mapping
from typing import Self

import msgspec
from msgspec.structs import replace

from sentinel.detectors.signals import Signal
from sentinel.series.patterns import Meaning
from sentinel.series.tag_words import EVAL, TRAIN, spelled, words_of

Find = Callable[[str], Meaning | None]
"""Gives the meaning of a tag by its name alone."""

STEP = "_step"
EPOCH = "_epoch"
"""Endings of a metric that is logged in training and once more as the mean of an epoch, as in Lightning."""

FAR_SPARSER = 2
"""The epochs of a pair count instead of its steps if they have at least this many times the points."""

_PAIRED = frozenset({Signal.LOSS, Signal.POLICY_LOSS, Signal.ACCURACY, Signal.PERPLEXITY})
"""Signals that a pair of steps and epochs may log."""

_OF_BATCHES = TRAIN | {"batch", "minibatch", "running", "step", "rollout"}
"""Words of a tag that is logged for training batches."""

_OF_A_QUANTISER = frozenset(
    {"vq", "vqloss", "codebook", "commit", "commitment", "quantizer", "quantization", "quantize"}
)
"""Words of tags beside which a perplexity is that of a codebook."""

_OF_EVALUATIONS = frozenset({Signal.EVAL_SCORE, Signal.EVAL_QUALITY})
"""Signals of metrics that hardly anybody computes of batches, so that a name without a part of the data is
that of held-out data."""

_OF_TRAINING = frozenset({Signal.LOSS, Signal.POLICY_LOSS, Signal.REWARD})
"""Signals of a training, beside which an accuracy may be that of held-out data."""


class TagContext(msgspec.Struct, frozen=True, array_like=True):
    """What the first points of a stream say of its tags.

    ``epochs`` are the stems of pairs ``X_step`` and ``X_epoch`` of which the epochs count. ``held_out`` says
    whether an accuracy without any further word is that of held-out data: training and evaluation have other
    metrics that name them, and it is logged no more often than those of the evaluation. ``errors`` are tags
    of an error on training data that is the loss: the evaluation has the same, and nothing else is a loss.
    ``quantises`` says whether a perplexity is that of a codebook, not of a language model, and
    ``sums_samples`` whether the loss of a discriminator is logged of which true and false samples are parts.
    ``scores`` are tags such as `f1` and `mcc` that name no part of the data, beside the losses of training
    and evaluation.
    """

    epochs: frozenset[str] = frozenset()
    held_out: bool = False
    errors: frozenset[str] = frozenset()
    quantises: bool = False
    sums_samples: bool = False
    scores: frozenset[str] = frozenset()

    @classmethod
    def from_tags(cls, counts: Mapping[str, int], find: Find) -> Self:
        """Return the context that the first tags make, given how often each was logged."""
        return cls(
            epochs=frozenset(_epochs(counts, find)),
            held_out=_is_held_out(counts, find),
            errors=frozenset(_errors(counts, find)),
            quantises=any(not _OF_A_QUANTISER.isdisjoint(words_of(tag)) for tag in counts),
            sums_samples=any(
                (meaning := find(tag)) is not None and meaning.signal is Signal.DISCRIMINATOR_LOSS
                for tag in counts
            ),
            scores=frozenset(_scores(counts, find)),
        )

    def meaning(self, tag: str, find: Find) -> Meaning | None:
        """Return what a tag means; ``find`` gives what its name alone means."""
        if self.epochs and tag.endswith((STEP, EPOCH)):
            stem = tag.removesuffix(STEP).removesuffix(EPOCH)
            if stem in self.epochs:
                return find(stem + STEP) if tag == stem + EPOCH else None
        if self.quantises and _is_perplexity(tag):
            return Meaning(Signal.CODEBOOK_PERPLEXITY)
        meaning = find(_of_evaluation(tag) if tag in self.scores else tag)
        if self.sums_samples and meaning is not None and meaning.signal is Signal.DISCRIMINATOR_LOSS_PART:
            return None
        if self.held_out and meaning is not None and meaning.signal is Signal.ACCURACY and _is_bare(tag):
            return replace(meaning, signal=Signal.EVAL_ACCURACY)
        return Meaning(Signal.LOSS) if tag in self.errors else meaning


def _epochs(counts: Mapping[str, int], find: Find) -> set[str]:
    """Return stems of the pairs whose epochs have far more points than their steps, which may have none."""
    stems = {tag.removesuffix(EPOCH): count for tag, count in counts.items() if tag.endswith(EPOCH)}
    return {
        stem
        for stem, count in stems.items()
        if stem not in counts
        and count >= FAR_SPARSER * counts.get(stem + STEP, 0)
        and (step := find(stem + STEP)) is not None
        and step.signal in _PAIRED
    }


def _is_held_out(counts: Mapping[str, int], find: Find) -> bool:
    """Return whether the one accuracy without any further word is that of held-out data."""
    signals = {tag: meaning.signal for tag in counts if (meaning := find(tag)) is not None}
    accuracies = [tag for tag, signal in signals.items() if signal is Signal.ACCURACY and _is_bare(tag)]
    eval_counts = [count for tag, count in counts.items() if not EVAL.isdisjoint(words_of(tag))]
    names_training = any(
        signal in _OF_TRAINING and (signal is not Signal.LOSS or not TRAIN.isdisjoint(words_of(tag)))
        for tag, signal in signals.items()
    )
    return (
        len(accuracies) == 1
        and names_training
        and counts[accuracies[0]] <= max(eval_counts, default=0)
        and Signal.EVAL_ACCURACY not in signals.values()
    )


def _errors(counts: Mapping[str, int], find: Find) -> set[str]:
    """Return tags of an error that is the loss, such as `Train MSE` if there is `Valid MSE`."""
    meanings = {tag: find(tag) for tag in counts}
    if any(meaning is not None and meaning.signal is Signal.LOSS for meaning in meanings.values()):
        return set()
    eval_words = {
        frozenset(words_of(tag)) - EVAL
        for tag, meaning in meanings.items()
        if meaning is not None and meaning.signal is Signal.EVAL_LOSS and not EVAL.isdisjoint(words_of(tag))
    }
    unknown = {tag: frozenset(words_of(tag)) for tag, meaning in meanings.items() if meaning is None}
    return {tag for tag, words in unknown.items() if words & TRAIN and words - TRAIN in eval_words}


def _scores(counts: Mapping[str, int], find: Find) -> set[str]:
    """Return tags of a score that name no part of the data, where there are losses of both, and that are
    logged no more often than the loss of the evaluation.
    """
    meanings = {tag: find(tag) for tag in counts}
    signals = {tag: meaning.signal for tag, meaning in meanings.items() if meaning is not None}
    losses = [counts[tag] for tag, signal in signals.items() if signal is Signal.EVAL_LOSS]
    if not losses or Signal.LOSS not in signals.values():
        return set()
    parts = TRAIN | EVAL
    named = {frozenset(words - parts) for tag in counts if (words := set(words_of(tag))) & parts}
    return {
        tag
        for tag, meaning in meanings.items()
        if meaning is None
        and counts[tag] <= max(losses)
        and _is_bare(tag)
        and frozenset(words_of(tag)) not in named
        and (found := find(_of_evaluation(tag))) is not None
        and found.signal in _OF_EVALUATIONS
    }


def _of_evaluation(tag: str) -> str:
    return f"eval_{tag}"


def _is_perplexity(tag: str) -> bool:
    """Return whether a tag is a perplexity, perhaps of one of several codebooks, on whichever data."""
    words = {word for word in spelled(words_of(tag)) if not word.isdecimal()}
    return words - EVAL - TRAIN - _OF_A_QUANTISER == {"perplexity"}


def _is_bare(tag: str) -> bool:
    return _OF_BATCHES.isdisjoint(words_of(tag))
