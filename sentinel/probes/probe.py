"""Measures a PyTorch training every some steps, and hands the numbers to the logger that the training has.

The training must not feel it. Between two measurements a step costs one comparison. A set that raises, is
slow or does not understand the model is switched off with one line. No set draws a random number or changes
a tensor, so a training with probes gives the same weights as one without.
"""

import logging
import time
from collections.abc import Callable, Iterable
from contextlib import suppress
from functools import partial
from types import TracebackType
from typing import TYPE_CHECKING, Any, NamedTuple, Self

from sentinel.ground.text import clean_text
from sentinel.probes.base import Moment, Numbers, ProbeSet, Subject, Unsuitable
from sentinel.probes.discovery import probe_sets
from sentinel.probes.target import Target, target

if TYPE_CHECKING:
    import torch

SLOW_SECONDS = 1.0
"""A set whose measurement takes longer is switched off: it would cost the training more than it is worth."""

_log = logging.getLogger("sentinel")


class _OnTheWay(NamedTuple):
    """Numbers of a step that are on their way to the host; ``arrival`` waits until they are there."""

    step: int
    numbers: Numbers
    arrival: Callable[[], object]


class probe:  # noqa: N801  it reads as a function at its call, as `contextlib.suppress` does
    """Probes of one training.

        with sentinel.probe(model, optimizer, to=writer, every=100) as probe:
            for batch in loader:
                loss = step(batch)
                probe.step(batch=batch, loss=loss)

    ``to`` is a SummaryWriter, a W&B run, a `Monitor`, the path of a file of JSON lines, or a function of a
    step and its numbers. ``optimizer`` may be several. Only the first process of a distributed training
    writes. Raises TypeError for a ``to`` that is none of these, and ValueError for ``every`` below 1; after
    that nothing raises.
    """

    def __init__(
        self,
        model: "torch.nn.Module",
        optimizer: "torch.optim.Optimizer | Iterable[torch.optim.Optimizer]",
        *,
        to: Target,
        every: int = 100,
    ) -> None:
        if every < 1:
            raise ValueError(f"every={every}: measure every first step or more seldom")
        self._every = every
        self._write = target(to)
        several = (optimizer,) if hasattr(optimizer, "param_groups") else tuple(optimizer)
        subject = Subject(model, [_unwrapped(one) for one in several])
        self._sets: dict[str, ProbeSet] = {}
        if _is_first_process():
            for name, kind in probe_sets().items():
                self._guarded(name, partial(self._begin, name, kind, subject))
        self._steps = 0
        self._waiting: _OnTheWay | None = None
        self._arm()

    @property
    def sets(self) -> list[str]:
        """The names of the sets that measure."""
        return list(self._sets)

    def step(self, *, batch: Any = None, loss: Any = None, scaler: Any = None) -> None:
        """Note that a step has ended: after the optimizer's step, before or after `zero_grad`."""
        if not self._sets:
            return
        step, self._steps = self._steps, self._steps + 1
        if step % self._every == 0:
            self._flush()
            self._measure(step, Moment(batch, loss, scaler))
        elif self._waiting is not None:
            self._flush()
        if self._steps % self._every == 0:
            self._arm()

    def close(self) -> None:
        """Write what is left and remove every hook."""
        self._flush()
        for one in self._sets.values():
            with suppress(Exception):
                one.disarm()
        self._sets = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _begin(self, name: str, kind: type[ProbeSet], subject: Subject) -> None:
        self._sets[name] = kind(subject)

    def _arm(self) -> None:
        for name, one in list(self._sets.items()):
            self._guarded(name, one.arm)

    def _measure(self, step: int, moment: Moment) -> None:
        found: dict[str, torch.Tensor | float] = {}
        for name, one in list(self._sets.items()):
            begun = time.perf_counter()
            found |= self._guarded(name, partial(_measured, one, moment)) or {}
            self._guarded(name, one.disarm)
            if (took := time.perf_counter() - begun) > SLOW_SECONDS:
                self._switch_off(name, f"a measurement took {took:.1f} s")
        self._waiting = _OnTheWay(step, found, _arrival(found))

    def _flush(self) -> None:
        """Write the numbers of the last measurement, which a device has computed by now."""
        if self._waiting is None:
            return
        waiting, self._waiting = self._waiting, None
        if not waiting.numbers:
            return
        try:
            waiting.arrival()
            self._write(waiting.step, {name: float(number) for name, number in waiting.numbers.items()})
        except Exception as error:  # noqa: BLE001  whatever a logger raises must not end the training
            for name in list(self._sets):
                self._guarded(name, self._sets[name].disarm)
            self._sets = {}
            _log.error("probes are off: the numbers cannot be written: %s", _said(error))

    def _guarded(self, name: str, work: Callable[[], Any]) -> Any:
        """What the work gives; None, and the set is off, if it raises."""
        try:
            return work()
        except Unsuitable as reason:
            self._switch_off(name, str(reason))
        except Exception as error:  # noqa: BLE001  a defect of a probe must not end the training
            self._switch_off(name, _said(error))
        return None

    def _switch_off(self, name: str, reason: str) -> None:
        if (one := self._sets.pop(name, None)) is not None:
            with suppress(Exception):
                one.disarm()
        _log.warning("the probe %s is off: %s", name, clean_text(reason, 300))


def _unwrapped(optimizer: Any) -> "torch.optim.Optimizer":
    """The optimizer within those that Accelerate and Lightning put around it, which call no hooks."""
    inner = getattr(optimizer, "optimizer", None)
    return _unwrapped(inner) if hasattr(inner, "param_groups") else optimizer


def _measured(one: ProbeSet, moment: Moment) -> Numbers:
    """The numbers of a set, with each tensor on its way to the host, so that nobody waits for the device."""
    return {
        name: number.detach().to("cpu", non_blocking=True) if hasattr(number, "detach") else float(number)
        for name, number in one.measure(moment).items()
    }


def _arrival(numbers: Numbers) -> Callable[[], object]:
    """What waits for the copies from a CUDA device, which a step later have long arrived."""
    import torch

    if not torch.cuda.is_initialized() or not numbers:
        return lambda: None
    event = torch.cuda.Event()
    event.record()
    return lambda: event.synchronize()


def _is_first_process() -> bool:
    import torch.distributed as together

    return not (together.is_available() and together.is_initialized()) or together.get_rank() == 0


def _said(error: BaseException) -> str:
    return f"{type(error).__name__}: {error}"
