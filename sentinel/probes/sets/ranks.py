"""Whether all ranks hold equal weights, and whether any two get the same batch.

Ranks drift apart where a part of the model is outside of DDP, or where the ranks begin differently. Each
rank's loss falls, so no metric shows it. Ranks with equal batches compute the same gradient many times over.

## Cost
A sum over at most 4,096 weights of each tensor at measured steps, and some messages to the store at which
torch's ranks found each other, over a connection of its own. It makes no collective call, and no rank waits
for another one, so a rank that does not take part or leaves holds nobody.

## When it misleads
Ranks that train models of their own on purpose differ. It is off where each rank holds a shard, and where the
ranks did not meet at `MASTER_ADDR` and `MASTER_PORT`, as those of torchrun do. What is said of a step was
measured at the measurement before.

## Source
TrainCheck's invariant that data-parallel ranks hold equal weights; entry N-ranks-apart and, for batches, DP2.
"""

import itertools
import os
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from sentinel.probes.base import Moment, Numbers, ProbeSet, Subject, Unsuitable, arrival
from sentinel.probes.sets.batches import fingerprint

if TYPE_CHECKING:
    import torch

_MAX_OF_A_TENSOR = 1 << 12  # weights
_MAX_WAITING_MEASUREMENTS = 4  # measurements that wait for a rank
_STORE_PATIENCE = timedelta(seconds=5)  # with the store, which answers within milliseconds
_made = itertools.count()  # each rank makes the same probes in the same order


class Ranks(
    ProbeSet,
    shows={
        "ranks/differing_weights": "ranks whose weights are not those of the first rank",
        "ranks/equal_batches": "ranks whose batch is that of another one",
    },
    entries=("N-ranks-apart", "DP2"),
    on_every_rank=True,
):
    """Each rank tells the store a checksum; the first rank reads them a measurement later."""

    def __init__(self, subject: Subject) -> None:
        super().__init__(subject)
        import torch.distributed as together

        several = together.is_available() and together.is_initialized() and together.get_world_size() > 1
        self._others = together.get_world_size() if several else 0
        if not several:
            return
        sharded = any(hasattr(parameter, "to_local") for _, parameter in subject.parts.parameters)
        if sharded or "FullyShardedDataParallel" in type(subject.model).__name__:
            raise Unsuitable("each rank holds a shard of the weights")
        self._store = _store(subject)
        self._rank = together.get_rank()
        self._measured = 0
        self._unfinished: list[int] = []  # measurements of which not all ranks told yet
        self._sum: torch.Tensor | None = None
        self._batch: int | None = None

    def glance(self, moment: Moment) -> None:
        """Tell the store what the step before computed, which lies on the host by now."""
        if self._others and self._sum is not None:
            self._arrival()
            key = self._key(self._measured, self._rank)
            self._store.set(key, f"{int(self._sum)} {'' if self._batch is None else self._batch}")
            self._unfinished = [*self._unfinished, self._measured][-_MAX_WAITING_MEASUREMENTS:]
            self._sum = None

    def measure(self, moment: Moment) -> Numbers:
        """Return what the ranks told of an earlier measurement, if all did."""
        if not self._others:
            return {}
        self._measured += 1
        total: Any = sum(_checksum(parameter) for _, parameter in self.subject.parts.parameters)
        self._sum = total.to("cpu", non_blocking=True)
        self._arrival = arrival()
        self._batch = fingerprint(moment.batch)
        return self._compared() if self._rank == 0 else {}

    def _compared(self) -> Numbers:
        for number in reversed(self._unfinished):
            keys = [self._key(number, rank) for rank in range(self._others)]
            if self._store.check(keys):
                answers = [self._store.get(key).decode().split(" ") for key in keys]
                self._unfinished = [later for later in self._unfinished if later > number]
                for key in keys:
                    self._store.delete_key(key)
                batches = [batch for _, batch in answers if batch]
                return {
                    "ranks/differing_weights": float(sum(weights != answers[0][0] for weights, _ in answers)),
                    "ranks/equal_batches": float(len(batches) - len({*batches})),
                }
        return {}

    @staticmethod
    def _key(number: int, rank: int) -> str:
        return f"{number}/{rank}"


def _store(subject: Subject) -> Any:
    """Return a connection to the store of torch's ranks, with keys of this probe and of this start of the
    ranks.

    torch shows the store of its default group to nobody. Groups and collective calls would do without it, but
    each rank would have to make them, in the same order, and would wait for the others.
    """
    from torch.distributed import PrefixStore, TCPStore

    if not (address := os.environ.get("MASTER_ADDR")) or not (port := os.environ.get("MASTER_PORT")):
        raise Unsuitable("the ranks did not meet at MASTER_ADDR and MASTER_PORT")
    start = os.environ.get("TORCHELASTIC_RESTART_COUNT", "0")  # as the store of torchrun outlives its ranks
    prefix = f"sentinel/{start}/{subject.first_step}/{next(_made)}"
    return PrefixStore(prefix, TCPStore(address, int(port), timeout=_STORE_PATIENCE))


def _checksum(parameter: "torch.Tensor") -> "torch.Tensor":
    """Return the sum of the bits of evenly spread weights, which differs where two differ in a bit."""
    import torch

    flat = parameter.detach().reshape(-1)
    bits = {2: torch.int16, 4: torch.int32, 8: torch.int64}.get(flat.element_size(), torch.uint8)
    return flat[:: max(1, flat.numel() // _MAX_OF_A_TENSOR)].contiguous().view(bits).sum(dtype=torch.int64)
