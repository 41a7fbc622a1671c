"""Whether batches, or the random numbers of their augmentation, come again.

Workers that read the same shard give each batch once a worker. A sampler that is not told the epoch gives the
same batches each epoch. Workers with one seed draw the same augmentations.

## Cost
At each step a hash of 32 values of one tensor that lies on the host; nothing for tensors of a device.

## When it misleads
It begins after 32 different batches, so it is silent about a training on few. Data that is not shuffled on
purpose repeats its order. Augmentation is known only if the loop hands over its random parameters, as
`augmentation=`, of which there must be eight or more.

## Source
Probe `data/batch_hash` of the catalogue (DP1, DP2, DP14).
"""

from collections.abc import Iterator, Mapping
from hashlib import blake2b
from typing import Any

import numpy as np

from sentinel.probes.base import Cost, Moment, Numbers, ProbeSet, Subject, is_on_host

_SAMPLED_VALUES = 32  # of a tensor, evenly spread
_MIN_VALUES = 8  # in a tensor that tells one batch from another
_NUMBER_DTYPES = "biufc"  # NumPy's letters for the kinds of numbers
_MIN_BATCHES = 32  # different ones, before a repetition means something
_MAX_NEAR_BATCHES = 16  # batches: as many workers may read the same shard
_MAX_BATCHES = 1 << 16  # batches that are remembered
_HASH_BITS = 0xFFFFFF  # what a number of 32 bits holds exactly


class Batches(
    ProbeSet,
    shows={
        "data/batch_hash": "24 bits that are equal for equal batches",
        "data/batches_again": "share of batches that came within 16 batches before",
        "data/batches_in_old_order": "share of batches that follow the same batch as in an earlier epoch",
        "data/augmentations_again": "share of batches whose augmentation was drawn before",
    },
    entries=("DP1", "DP2", "DP14"),
    cost=Cost.DEFAULT,
    needs_torch=False,
):
    """Remembers what it saw by a hash, on the host."""

    def __init__(self, subject: Subject) -> None:
        super().__init__(subject)
        self._last_by_hash: dict[int, int] = {}  # the number of the batch at which a hash came last
        self._pairs: set[tuple[int, int]] = set()
        self._augmentations: set[int] = set()
        self._count = 0
        self._last: int | None = None
        self._again: dict[str, list[bool]] = {}

    def glance(self, moment: Moment) -> None:
        """Compare with what came before."""
        drawn = fingerprint(moment.augmentation)
        if drawn is not None:
            self._note_repeat("data/augmentations_again", drawn in self._augmentations)
            if len(self._augmentations) < _MAX_BATCHES:
                self._augmentations.add(drawn)
        batch = fingerprint(moment.batch)
        if batch is None:
            return
        self._count += 1
        if len(self._last_by_hash) >= _MIN_BATCHES:
            is_repeat = self._count - self._last_by_hash.get(batch, -_MAX_BATCHES) <= _MAX_NEAR_BATCHES
            self._note_repeat("data/batches_again", is_repeat)
            self._note_repeat(
                "data/batches_in_old_order", not is_repeat and (self._last, batch) in self._pairs
            )
        if len(self._last_by_hash) < _MAX_BATCHES:
            self._last_by_hash[batch] = self._count
            if self._last is not None and self._last != batch:
                self._pairs.add((self._last, batch))
        self._last = batch

    def measure(self, moment: Moment) -> Numbers:
        """Return the shares since the last measurement."""
        shares = {name: sum(repeats) / len(repeats) for name, repeats in self._again.items()}
        self._again = {}
        return shares if self._last is None else {**shares, "data/batch_hash": self._last & _HASH_BITS}

    def _note_repeat(self, name: str, again: bool) -> None:
        self._again.setdefault(name, []).append(again)


def fingerprint(batch: Any) -> int | None:
    """Return a hash of evenly spread values of the first tensor or array on the host with several values."""
    for tensor in tensors(batch):
        if not is_on_host(tensor):
            return None
        array = _host_array(tensor)
        apart = max(1, array.size // _SAMPLED_VALUES)
        values = array.flat[
            : _SAMPLED_VALUES * apart : apart
        ]  # copies these alone, whatever the array's strides
        several = values.tobytes()
        are_numbers = array.dtype.kind in _NUMBER_DTYPES and values.size >= _MIN_VALUES
        if are_numbers and several != several[: values.itemsize] * values.size:
            return int.from_bytes(blake2b(several, digest_size=8).digest())
    return None


def _host_array(tensor: Any) -> "np.ndarray[Any, Any]":
    """Return the numbers of a tensor or an array on the host, where they lie."""
    if not hasattr(tensor, "detach"):
        return np.asarray(tensor)
    import torch

    of_numpy = tensor.detach().view(torch.int16) if tensor.dtype is torch.bfloat16 else tensor.detach()
    array: np.ndarray[Any, Any] = of_numpy.numpy()
    return array


def tensors(batch: Any) -> Iterator[Any]:
    """Yield the tensors and arrays in a batch, in their order."""
    if hasattr(batch, "reshape") and hasattr(batch, "tolist"):
        yield batch
    elif isinstance(batch, list | tuple | Mapping):
        for part in batch.values() if isinstance(batch, Mapping) else batch:
            yield from tensors(part)
