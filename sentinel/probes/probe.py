"""Measures a PyTorch training every some steps, and hands the numbers to the logger that the training has.

The training must not feel it. Between two measurements a step costs a few comparisons on the host. A set
that raises, hangs or does not understand the model is switched off with one line. No set draws a random
number or changes a tensor, so a training with probes gives the same weights as one without.
"""

import logging
import math
import sys
import time
from collections.abc import Callable, Iterable, Mapping
from contextlib import nullcontext, suppress
from functools import partial
from types import TracebackType
from typing import TYPE_CHECKING, Any, NamedTuple, Self

from sentinel.common.text import clean_text
from sentinel.probes.base import Moment, Numbers, ProbeSet, Subject, Unsuitable, arrival
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
    of these and for a name that is not known, and ValueError for ``every`` below 1 or an unknown set. Nothing
    that a training does raises afterwards.
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
        self._subject = Subject(model, [_unwrapped(optimizer) for optimizer in several], **training)
        self._kinds = self._suitable(chosen(sets))
        self._sets: dict[str, ProbeSet] = {}
        self._each(self._kinds, self._begin_set)
        self._glancing = self._that("glance")
        self._steps = 0
        self._waiting: list[_OnTheWay] = []
        self._evaluates = False
        self._arm()

    @property
    def sets(self) -> list[str]:
        """The names of the sets that measure."""
        return list(self._sets)

    def step(self, **arguments: Any) -> None:
        """Note that a step has ended: after the optimizer's step, before or after `zero_grad`.

        ``batch``, ``loss``, ``scaler``, ``outputs`` and what else `Moment` names may be handed over.
        """
        if not self._sets:
            return
        moment = Moment(**arguments)
        step = self._steps
        self._steps = self._steps + 1
        if self._waiting:
            self._flush()
        if self._evaluates:
            self._conclude(step - 1)
        for name in self._glancing:
            try:
                self._sets[name].glance(moment)
            except Exception as error:  # noqa: BLE001  a defect of a probe must not end the training
                self._switch_off(name, _error_text(error))
        if step % self._every == 0:
            self._send(step, self._each(self._sets, partial(self._measured, moment)))
        if self._steps % self._every == 0:
            self._arm()

    def evaluate(self, **arguments: Any) -> None:
        """Note a batch of an evaluation, with what `Moment` names, while the model is as it evaluates."""
        self._evaluates = True
        moment = Moment(**arguments)
        self._each(self._that("evaluate"), lambda name: self._sets[name].evaluate(moment))

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

    def _suitable(self, kinds: Mapping[str, type[ProbeSet]]) -> Mapping[str, type[ProbeSet]]:
        """Return the sets that this process measures."""
        if not self._subject.is_of_torch():
            if off := [name for name, kind in kinds.items() if kind.needs_torch]:
                _log.warning("these probes are off, as they need a model of torch: %s", ", ".join(off))
            return {name: kind for name, kind in kinds.items() if not kind.needs_torch}
        if _is_first_process():
            return kinds
        return {name: kind for name, kind in kinds.items() if kind.on_every_rank}

    def _begin_set(self, name: str) -> None:
        self._sets[name] = self._kinds[name](self._subject)

    def _that(self, does: str) -> list[str]:
        """Return the probe sets that define a method; to call one that does nothing would cost time."""
        theirs = getattr(ProbeSet, does)
        return [name for name, probes in self._sets.items() if getattr(type(probes), does) is not theirs]

    def _arm(self) -> None:
        self._each(self._that("arm"), lambda name: self._sets[name].arm())

    def _disarm(self) -> None:
        for probes in self._sets.values():
            with suppress(Exception):
                probes.disarm()
        self._sets = {}
        self._glancing = []

    def _measured(self, moment: Moment, name: str) -> Numbers:
        """Return the numbers of a set, which ends if they took too long."""
        probes = self._sets[name]
        started_at = time.perf_counter()
        numbers = _on_the_way(probes.measure(moment))
        probes.disarm()
        if (took := time.perf_counter() - started_at) > SLOW_SECONDS:
            self._switch_off(name, f"a measurement took {took:.1f} s")
        return numbers

    def _conclude(self, step: int) -> None:
        """Send the numbers of the evaluation that ended."""
        self._evaluates = False
        evaluated = self._each(
            self._that("evaluated"), lambda name: _on_the_way(self._sets[name].evaluated())
        )
        self._send(max(step, 0), evaluated)

    def _send(self, step: int, numbers: Numbers) -> None:
        if numbers:
            self._waiting.append(_OnTheWay(self._subject.first_step + step, numbers, arrival()))

    def _flush(self) -> None:
        """Write the numbers of the last measurements, which a device has computed by now."""
        while self._waiting:
            waiting = self._waiting.pop(0)
            try:
                waiting.arrival()
                numbers = {name: float(number) for name, number in waiting.numbers.items()}
                finite = {name: number for name, number in numbers.items() if not math.isnan(number)}
                self._write(waiting.step, finite)
            except Exception as error:  # noqa: BLE001  whatever a logger raises must not end the training
                self._waiting = []
                self._disarm()
                _log.error("probes are off: the numbers cannot be written: %s", _error_text(error))

    def _each(self, names: Iterable[str], work: Callable[[str], Numbers | None]) -> Numbers:
        """Return what work with sets gives, without gradients. A set that raises or hangs is switched off."""
        numbers: dict[str, torch.Tensor | float] = {}
        try:
            no_gradients = sys.modules["torch"].no_grad() if "torch" in sys.modules else nullcontext()
            with no_gradients, deadline() as restart:
                for name in list(names):
                    restart()
                    try:
                        numbers |= work(name) or {}
                    except Exception as error:  # noqa: BLE001  a defect of a probe must not end the training
                        self._switch_off(name, _error_text(error))
        except TimeoutError:  # the alarm came just when a set had ended, so the others wait for the next time
            _log.warning("some probes are late: another one took all the time")
        self._subject.forget_parts()
        return numbers

    def _switch_off(self, name: str, reason: str) -> None:
        if (probes := self._sets.pop(name, None)) is not None:
            self._glancing = self._that("glance")
            with suppress(Exception):
                probes.disarm()
        _log.warning("the probe %s is off: %s", name, clean_text(reason, 300))


def _unwrapped(optimizer: Any) -> "torch.optim.Optimizer":
    """Return the optimizer within those that Accelerate and Lightning put around it, which call no hooks."""
    inner = getattr(optimizer, "optimizer", None)
    return _unwrapped(inner) if hasattr(inner, "param_groups") else optimizer


def _on_the_way(numbers: Numbers) -> Numbers:
    """Return the numbers, with each tensor's copy on its way to the host, so that no device is waited for."""
    return {
        name: number.detach().to("cpu", non_blocking=True, copy=True)
        if hasattr(number, "detach")
        else float(number)
        for name, number in numbers.items()
    }


def _is_first_process() -> bool:
    import torch.distributed as together

    return not (together.is_available() and together.is_initialized()) or together.get_rank() == 0


def _error_text(error: Exception) -> str:
    return str(error) if isinstance(error, Unsuitable) else f"{type(error).__name__}: {error}"
