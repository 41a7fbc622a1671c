"""Histograms in TensorBoard events. Each becomes a few points, whose tags end in ``#`` and a statistic:

- ``#mean`` and ``#std`` take all values of a bucket to lie in its middle.
- ``#zero_share`` is the share of values in buckets that contain or touch 0. PyTorch's buckets grow away from
  0, so that these values are the zeros themselves. TensorFlow has 30 equal buckets, so that these values lie
  around 0.
- ``#kurtosis`` is the fourth central moment over the squared variance. It is 3 for a normal distribution and
  NaN if all values are equal.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

_MAX_BUCKETS = 1 << 16  # no writer makes more by itself; a histogram with more is skipped


def statistics(value: Any) -> list[tuple[str, float]]:
    """Return tags and numbers for a ``Summary.Value``; none if it holds no histogram or an empty one."""
    buckets = _buckets(value)
    if buckets is None:
        return []
    low, high, count = buckets[buckets[:, 2] > 0].T
    if not len(count):
        return []
    with np.errstate(all="ignore"):
        middle = low / 2 + high / 2
        share = count / count.sum()
        mean = share @ middle
        variance = share @ (middle - mean) ** 2
        moments = {
            "mean": mean,
            "std": np.sqrt(variance),
            "zero_share": share[(low <= 0) & (high >= 0)].sum(),
            "kurtosis": share @ (middle - mean) ** 4 / variance**2,
        }
    return [(f"{value.tag}#{name}", float(number)) for name, number in moments.items()]


def _buckets(value: Any) -> NDArray[np.float64] | None:
    """Return the left edge, the right edge and the count of each bucket (buckets x 3)."""
    kind = value.WhichOneof("value")
    if kind == "histo":
        return _of_message(value.histo)
    if kind == "tensor" and value.metadata.plugin_data.plugin_name == "histograms":
        return _of_tensor(value.tensor)
    return None


def _of_message(histogram: Any) -> NDArray[np.float64] | None:
    """Return buckets that each begin where the one before ends. No value lies outside `min` and `max`."""
    if not 0 < len(histogram.bucket) == len(histogram.bucket_limit) <= _MAX_BUCKETS:
        return None
    limits = np.array([histogram.min, *histogram.bucket_limit])
    edges = np.clip(limits, histogram.min, histogram.max)
    return np.column_stack([edges[:-1], edges[1:], histogram.bucket])


def _of_tensor(tensor: Any) -> NDArray[np.float64] | None:
    shape = [dim.size for dim in tensor.tensor_shape.dim]
    if len(shape) != 2 or shape[1] != 3 or not 0 < shape[0] <= _MAX_BUCKETS:
        return None
    from tensorboard.util.tensor_util import make_ndarray  # slow to import

    try:
        return np.asarray(make_ndarray(tensor), np.float64)
    except (TypeError, ValueError):
        return None
