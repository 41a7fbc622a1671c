"""Measures a PyTorch training every some steps, and hands the numbers to the logger that the training has.

The training must not feel it. Between two measurements a step costs a few comparisons on the host. A set
that raises, hangs or does not understand the model is switched off with one line. No set draws a random
number or changes a tensor, so a training with probes gives the same weights as one without.
"""

import logging
import math
import time
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from functools import partial
from types import TracebackType
from typing import TYPE_CHECKING, Any, NamedTuple, Self

from sentinel.ground.text import clean_text
from sentinel.probes.base import Moment, Numbers, ProbeSet, Subject, Unsuitable
from sentinel.probes.deadline import deadline
from sentinel.probes.discovery import chosen
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
    step and its numbers. ``optimizer`` may be several. ``sets`` is ``"default"``, ``"cheap"`` for all, or
    names. What else the training has is told by the name that `Subject` gives it: ``scheduler``,
    ``reference``, ``environment``, ``replay``, ``loss_of``, and ``first_step`` after a resume. Every process
    of a distributed training makes a probe; the first one writes. Raises TypeError for a ``to`` that is none
    of these, and ValueError for ``every`` below 1 or an unknown set; after that nothing raises.
    """

    def __init__(
        self,
        model: "torch.nn.Module",
        optimizer: "torch.optim.Optimizer | Iterable[torch.optim.Optimizer]",
        *,
        to: Target,
        every: int = 100,
        sets: str | Iterable[str] = "default",
        **training: Any,
    ) -> None:
        if every < 1:
            raise ValueError(f"every={every}: measure every first step or more seldom")
        self._every = every
        self._write = target(to)
        several = (optimizer,) if hasattr(optimizer, "param_groups") else tuple(optimizer)
        subject = Subject(model, [_unwrapped(one) for one in several], **training)
        self._sets: dict[str, ProbeSet] = {}
        writes = _is_first_process()
        for name, kind in chosen(sets).items():
            if writes or kind.on_every_rank:
                self._guarded(name, partial(self._begin, name, kind, subject))
        self._glancing = self._that("glance")
        self._steps, self._first_step = 0, subject.first_step
        self._waiting: list[_OnTheWay] = []
        self._evaluates = False
        self._arm()

    @property
    def sets(self) -> list[str]:
        """The names of the sets that measure."""
        return list(self._sets)

    def step(self, **given: Any) -> None:
        """Note that a step has ended: after the optimizer's step, before or after `zero_grad`.

        ``batch``, ``loss``, ``scaler``, ``outputs`` and what else `Moment` names may be handed over.
        """
        if not self._sets:
            return
        moment = Moment(**given)
        step, self._steps = self._steps, self._steps + 1
        self._flush()
        if self._evaluates:
            self._conclude(step - 1)
        for name in self._glancing:
            try:
                self._sets[name].glance(moment)
            except Exception as error:  # noqa: BLE001  a defect of a probe must not end the training
                self._switch_off(name, _said(error))
        if step % self._every == 0:
            self._measure(step, moment)
        if self._steps % self._every == 0:
            self._arm()

    def evaluate(self, **given: Any) -> None:
        """Note a batch of an evaluation, with what `Moment` names, while the model is as it evaluates."""
        self._evaluates = True
        moment = Moment(**given)
        for name in self._that("evaluate"):
            self._guarded(name, partial(self._sets[name].evaluate, moment))

    def close(self) -> None:
        """Write what is left and remove every hook."""
        if self._evaluates:
            self._conclude(self._steps - 1)
        self._flush()
        self._disarm()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _begin(self, name: str, kind: type[ProbeSet], subject: Subject) -> None:
        self._sets[name] = kind(subject)

    def _that(self, does: str) -> list[str]:
        """The sets that have a method of their own; to guard one that does nothing would cost something."""
        theirs = getattr(ProbeSet, does)
        return [name for name, one in self._sets.items() if getattr(type(one), does) is not theirs]

    def _arm(self) -> None:
        for name in self._that("arm"):
            self._guarded(name, self._sets[name].arm)

    def _disarm(self) -> None:
        for one in self._sets.values():
            with suppress(Exception):
                one.disarm()
        self._sets, self._glancing = {}, []

    def _measure(self, step: int, moment: Moment) -> None:
        found: dict[str, torch.Tensor | float] = {}
        for name, one in list(self._sets.items()):
            begun = time.perf_counter()
            found |= self._guarded(name, partial(_measured, one, moment)) or {}
            if (took := time.perf_counter() - begun) > SLOW_SECONDS and name in self._sets:
                self._switch_off(name, f"a measurement took {took:.1f} s")
        self._send(step, found)

    def _conclude(self, step: int) -> None:
        """Send the numbers of the evaluation that ended."""
        self._evaluates = False
        found: dict[str, torch.Tensor | float] = {}
        for name, one in list(self._sets.items()):
            found |= self._guarded(name, partial(_evaluated, one)) or {}
        self._send(max(step, 0), found)

    def _send(self, step: int, found: Numbers) -> None:
        if found:
            self._waiting.append(_OnTheWay(self._first_step + step, found, _arrival()))

    def _flush(self) -> None:
        """Write the numbers of the last measurements, which a device has computed by now."""
        while self._waiting:
            waiting = self._waiting.pop(0)
            try:
                waiting.arrival()
                numbers = {name: float(number) for name, number in waiting.numbers.items()}
                known = {name: number for name, number in numbers.items() if not math.isnan(number)}
                self._write(waiting.step, known)
            except Exception as error:  # noqa: BLE001  whatever a logger raises must not end the training
                self._waiting = []
                self._disarm()
                _log.error("probes are off: the numbers cannot be written: %s", _said(error))

    def _guarded(self, name: str, work: Callable[[], Any]) -> Any:
        """What the work gives without gradients; None, and the set is off, if it raises or hangs."""
        import torch

        try:
            with torch.no_grad(), deadline():
                return work()
        except Exception as error:  # noqa: BLE001  a defect of a probe must not end the training
            self._switch_off(name, _said(error))
        return None

    def _switch_off(self, name: str, reason: str) -> None:
        if (one := self._sets.pop(name, None)) is not None:
            self._glancing = self._that("glance")
            with suppress(Exception):
                one.disarm()
        _log.warning("the probe %s is off: %s", name, clean_text(reason, 300))


def _unwrapped(optimizer: Any) -> "torch.optim.Optimizer":
    """The optimizer within those that Accelerate and Lightning put around it, which call no hooks."""
    inner = getattr(optimizer, "optimizer", None)
    return _unwrapped(inner) if hasattr(inner, "param_groups") else optimizer


def _measured(one: ProbeSet, moment: Moment) -> Numbers:
    numbers = _on_the_way(one.measure(moment))
    one.disarm()
    return numbers


def _evaluated(one: ProbeSet) -> Numbers:
    return _on_the_way(one.evaluated())


def _on_the_way(numbers: Numbers) -> Mapping[str, "torch.Tensor | float"]:
    """The numbers, with each tensor on its way to the host, so that nobody waits for the device."""
    return {
        name: number.detach().to("cpu", non_blocking=True) if hasattr(number, "detach") else float(number)
        for name, number in numbers.items()
    }


def _arrival() -> Callable[[], object]:
    """What waits for the copies from a CUDA device, which a step later have long arrived."""
    import torch

    if not torch.cuda.is_initialized():
        return lambda: None
    event = torch.cuda.Event()
    event.record()
    return lambda: event.synchronize()


def _is_first_process() -> bool:
    import torch.distributed as together

    return not (together.is_available() and together.is_initialized()) or together.get_rank() == 0


def _said(error: Exception) -> str:
    return str(error) if isinstance(error, Unsuitable) else f"{type(error).__name__}: {error}"
