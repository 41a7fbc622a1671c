"""Which detectors fit a run, and which numbers it should log so that more of those judge it.

A detector fits if all that it lacks is what a training of this kind can log with a line. So a language model
is not asked for the score of an object detector.
"""

from collections import Counter
from collections.abc import Collection, Mapping, Sequence

import msgspec

from sentinel.detectors.signals import Signal

_POLICY = frozenset(
    {Signal.REWARD, Signal.POLICY_LOSS, Signal.KL, Signal.COMPLETION_LENGTH, Signal.APPROX_KL}
)
_PREFERENCE = frozenset({Signal.PREFERENCE_LOSS, Signal.PREFERENCE_MARGIN, Signal.LOGPS_CHOSEN})
_ADVERSARIAL = frozenset({Signal.GENERATOR_LOSS, Signal.DISCRIMINATOR_LOSS})
_LANGUAGE_POLICY = frozenset({Signal.KL, Signal.COMPLETION_LENGTH, Signal.CLIPPED_COMPLETION_RATIO})

_SIGNAL_NAMES = {
    Signal.LEARNING_RATE: "lr",
    Signal.GRAD_NORM: "grad_norm",
    Signal.TOKENS_PER_SECOND: "tokens_per_second",
    Signal.LOSS: "loss",
    Signal.EVAL_LOSS: "val_loss",
    Signal.EVAL_ACCURACY: "val_accuracy",
    Signal.REWARD: "reward",
    Signal.KL: "kl",
    Signal.ENTROPY: "entropy",
    Signal.PREFERENCE_MARGIN: "margin",
}
"""What a loop may call the signals that trainings of some kind can log."""

_ANY_TRAINING = frozenset({Signal.LEARNING_RATE, Signal.GRAD_NORM, Signal.TOKENS_PER_SECOND})
_SUPERVISED = frozenset({Signal.LOSS, Signal.EVAL_LOSS, Signal.EVAL_ACCURACY})


class Fit(msgspec.Struct, frozen=True):
    """How many detectors can judge a run, how many fit it, and how many more each number would let judge."""

    able: int
    fitting: int
    would_add: Mapping[str, int]

    def __str__(self) -> str:
        """Return `18 of the 24 that fit this run; logging `grad_norm` and `lr` would add 5`."""
        text = f"{self.able} of the {self.fitting} that fit"
        if not self.would_add:
            return text
        *names, last = [f"`{name}`" for name in self.would_add]
        names_text = f"{', '.join(names)} and {last}" if names else last
        return f"{text}; logging {names_text} would add {sum(self.would_add.values())}"


def fit(signals: Collection[str], lacking: Mapping[str, Sequence[str]], detectors: int) -> Fit:
    """Return how the ``detectors`` fit a run that logs these signals; ``lacking`` has what some lack."""
    loggable = _loggable(signals)
    unable = [missing for missing in lacking.values() if missing]
    would_add: Counter[str] = Counter()
    for missing in unable:
        if loggable.issuperset(missing):
            would_add[" with ".join(_SIGNAL_NAMES[Signal(name)] for name in missing)] += 1
    able = detectors - len(unable)
    return Fit(able, able + would_add.total(), dict(would_add.most_common()))


def _loggable(signals: Collection[str]) -> frozenset[str]:
    """Return the signals that a training which logs these ones can log as well."""
    if _POLICY.intersection(signals):
        language = {Signal.KL, Signal.ENTROPY} if _LANGUAGE_POLICY.intersection(signals) else set[Signal]()
        return _ANY_TRAINING | {Signal.REWARD} | language
    if _PREFERENCE.intersection(signals):
        return _ANY_TRAINING | {Signal.PREFERENCE_MARGIN, Signal.EVAL_LOSS}
    if _ADVERSARIAL.intersection(signals):
        return _ANY_TRAINING
    return _ANY_TRAINING | _SUPERVISED
