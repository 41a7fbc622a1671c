"""Histograms in TensorBoard events, as a few numbers each: points of tags that end in ``#`` and a statistic.

- ``#mean`` and ``#std``, as if all values of a bucket lay in its middle;
- ``#zero_share``: the share of values in buckets that contain or touch 0. Where buckets grow away from 0, as
  those of PyTorch do, these are the zeros themselves; of TensorFlow's 30 equal ones it is a neighbourhood;
- ``#kurtosis``: fourth central moment over squared variance; 3 for a normal distribution, NaN without spread.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

_MOST_BUCKETS = 1 << 16  # a histogram of more, which no writer makes by itself, is skipped


def statistics(value: Any) -> list[tuple[str, float]]:
    """Tags and numbers for a ``Summary.Value``; none if it holds no histogram or an empty one."""
    buckets = _buckets(value)
    if buckets is None:
        return []
    left, right, count = buckets[buckets[:, 2] > 0].T
    if not len(count):
        return []
    with np.errstate(all="ignore"):
        middle = left / 2 + right / 2
        share = count / count.sum()
        mean = share @ middle
        variance = share @ (middle - mean) ** 2
        found = {
            "mean": mean,
            "std": np.sqrt(variance),
            "zero_share": share[(left <= 0) & (right >= 0)].sum(),
            "kurtosis": share @ (middle - mean) ** 4 / variance**2,
        }
    return [(f"{value.tag}#{name}", float(number)) for name, number in found.items()]


def _buckets(value: Any) -> NDArray[np.float64] | None:
    """Left edge, right edge and count of each."""
    kind = value.WhichOneof("value")
    if kind == "histo":
        return _of_message(value.histo)
    if kind == "tensor" and value.metadata.plugin_data.plugin_name == "histograms":
        return _of_tensor(value.tensor)
    return None


def _of_message(histogram: Any) -> NDArray[np.float64] | None:
    """A bucket begins where the one before it ends; no value lies outside the least and the greatest."""
    if not 0 < len(histogram.bucket) == len(histogram.bucket_limit) <= _MOST_BUCKETS:
        return None
    limits = np.array([histogram.min, *histogram.bucket_limit])
    edges = np.clip(limits, histogram.min, histogram.max)
    return np.column_stack([edges[:-1], edges[1:], histogram.bucket])


def _of_tensor(tensor: Any) -> NDArray[np.float64] | None:
    shape = [dim.size for dim in tensor.tensor_shape.dim]
    if len(shape) != 2 or shape[1] != 3 or not 0 < shape[0] <= _MOST_BUCKETS:
        return None
    from tensorboard.util.tensor_util import make_ndarray  # slow to import

    try:
        return np.asarray(make_ndarray(tensor), np.float64)
    except (TypeError, ValueError):
        return None
