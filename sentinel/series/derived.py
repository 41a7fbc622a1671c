"""Computes what a log does not state: signals that follow from others, and the unit or sign of a tag."""

from collections.abc import Callable, Iterator, Mapping, Sequence

import msgspec
import numpy as np
from numpy.typing import NDArray

from sentinel.detectors.signals import Signal
from sentinel.series.buckets import Floats


class Derived(msgspec.Struct, frozen=True):
    """A signal that is a function of other signals at the same step.

    ``value`` takes one array for the first tag of each of the ``parts``. If there is a single part, it takes
    one array for each tag with which the stream begins. ``name`` makes a tag of their tags.
    """

    signal: Signal
    parts: tuple[Signal, ...]
    name: Callable[..., str]
    value: Callable[..., Floats]

    def tags(self, first: Callable[[Signal], str], sums: Mapping[str, Sequence[str]]) -> Sequence[str]:
        """Return the tags that it needs; "" for a tag that is not known yet."""
        if len(self.parts) == 1:
            return sums.get(self.parts[0], ())
        return [first(part) for part in self.parts]


def _sum(signal: Signal, part: Signal) -> Derived:
    return Derived(signal, (part,), lambda *tags: " + ".join(tags), lambda *values: np.sum(values, axis=0))


DERIVED = (
    Derived(
        Signal.PAD_FRACTION,
        (Signal.BATCH_TOKENS, Signal.BATCH_SLOTS),
        "1 - {}/{}".format,
        lambda tokens, slots: 1 - tokens / slots,
    ),
    _sum(Signal.LOSS, Signal.LOSS_PART),
    _sum(Signal.EVAL_LOSS, Signal.EVAL_LOSS_PART),
    _sum(Signal.DISCRIMINATOR_LOSS, Signal.DISCRIMINATOR_LOSS_PART),
)

SUMMED = frozenset(derived.parts[0] for derived in DERIVED if len(derived.parts) == 1)
"""Signals whose tags are added up to another signal."""

SHARES = frozenset(
    {
        *(Signal.ACCURACY, Signal.EVAL_ACCURACY, Signal.PREFERENCE_ACCURACY),
        *(Signal.MEAN_AVERAGE_PRECISION, Signal.MEAN_INTERSECTION_OVER_UNION, Signal.EVAL_SCORE),
    }
)
"""Signals from 0 to 1 that people also log in percent, under the same names."""

LOSS_OF_PERPLEXITY = {Signal.PERPLEXITY: Signal.LOSS, Signal.EVAL_PERPLEXITY: Signal.EVAL_LOSS}
"""The losses of which perplexities are the exponentials."""

_MAX_SHARE = 1.5  # no share is larger, even if it was rounded
_MAX_SHARE_OF_ERRORS = 3.0  # at a first evaluation; words that a recogniser inserts are errors as well


def derived(tags: Mapping[str, Sequence[str]]) -> Iterator[tuple[Signal, str]]:
    """Yield the derived signals and their tags, given the tags of logged signals."""
    sums: dict[str, Sequence[str]] = {part: sorted(tags.get(part, ())) for part in SUMMED}
    for signal in DERIVED:
        parts = signal.tags(lambda part: next(iter(tags.get(part, ())), ""), sums)
        if parts and all(parts):
            yield signal.signal, signal.name(*parts)


def losses_of(perplexities: Floats) -> Floats:
    """Return the losses of perplexities; NaN for what is none."""
    is_one = perplexities > 0
    return np.log(perplexities, where=is_one, out=np.full_like(perplexities, np.nan))


class Units(msgspec.Struct, array_like=True):
    """Factors for the values of tags. The first value of a tag that is not 0 decides its factor."""

    factors: dict[str, float] = msgspec.field(default_factory=dict)  # by tag

    def shares(self, tag: str, values: Floats) -> tuple[Floats, NDArray[np.bool_]]:
        """Return the values as shares, and which of them can be shares. A percentage may begin below 1.5."""
        is_finite = np.isfinite(values)
        nonzero = values[is_finite & (values != 0)]
        if tag not in self.factors and len(nonzero):
            self.factors[tag] = 0.01 if nonzero[0] > _MAX_SHARE else 1.0
        scaled = values * self.factors.get(tag, 1.0)
        return scaled, ~is_finite | (scaled <= _MAX_SHARE)

    def errors(self, tag: str, values: Floats) -> Floats:
        """Return shares of errors, which may exceed 1, as shares."""
        nonzero = values[np.isfinite(values) & (values != 0)]
        if tag not in self.factors and len(nonzero):
            self.factors[tag] = 0.01 if nonzero[0] > _MAX_SHARE_OF_ERRORS else 1.0
        return values * self.factors.get(tag, 1.0)

    def positive(self, tag: str, values: Floats) -> Floats:
        """Return the values with the sign that makes the first of them positive."""
        nonzero = values[np.isfinite(values) & (values != 0)]
        if tag not in self.factors and len(nonzero):
            self.factors[tag] = float(np.sign(nonzero[0]))
        return values * self.factors.get(tag, 1.0)
