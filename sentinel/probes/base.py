"""What a set of probes is. torch comes from the environment of the training; an import does without it."""

import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

import numpy as np

from sentinel.probes.deadline import deadline

if TYPE_CHECKING:
    import torch

Numbers = Mapping[str, "torch.Tensor | float"]
"""What a set measured, by name. A tensor has one element and may still be on a device. NaN is not known."""


class Unsuitable(Exception):
    """A set cannot measure this training. The message says why."""


class Cost(StrEnum):
    """How much wall time all sets of a kind may take together if every hundredth step is measured."""

    DEFAULT = "default"  # at most a thousandth
    CHEAP = "cheap"  # at most a hundredth


class Parts(NamedTuple):
    """What a model and its optimizers consist of at a step, from one walk over them."""

    modules: "Sequence[torch.nn.Module]"
    parameters: "Sequence[tuple[str, torch.Tensor]]"  # by each of their names
    groups: Sequence[tuple[str, Mapping[str, Any]]]  # each by its own name, else by its number
    optimized: "Sequence[torch.Tensor]"  # the parameters of the groups, each once


@dataclass(frozen=True)
class Subject:
    """The training that is probed. What it does not have is None."""

    model: "torch.nn.Module"  # of other libraries whatever stands for one
    optimizers: "Sequence[torch.optim.Optimizer]"
    scheduler: Any = None  # a learning-rate scheduler
    reference: "torch.nn.Module | None" = None  # the frozen model of a preference training
    environment: Any = None  # normalises observations: has `obs_rms`
    replay: Any = None  # a replay buffer: has `size()` or a length
    loss_of: Callable[[Any], Any] | None = None  # the loss of a batch, without its gradient
    first_step: int = 0

    @cached_property
    def parts(self) -> Parts:
        """What the model and its optimizers consist of. Models may be large, so it is done once a step."""
        groups = [group for optimizer in self.optimizers for group in optimizer.param_groups]
        parameters = {id(parameter): parameter for group in groups for parameter in group["params"]}
        return Parts(
            list(self.model.modules()),
            list(self.model.named_parameters(remove_duplicate=False)),
            [(str(group.get("name", number)), group) for number, group in enumerate(groups)],
            list(parameters.values()),
        )

    def forget_parts(self) -> None:
        """Hold none of the parts any longer, as a model may change between two measurements."""
        vars(self).pop("parts", None)

    def optimized(self) -> "list[torch.Tensor]":
        """Return the parameters that an optimizer holds and may change, each once."""
        return [parameter for parameter in self.parts.optimized if parameter.requires_grad]

    def is_of_torch(self) -> bool:
        """Return whether the model is one of torch, which then is imported."""
        return "torch" in sys.modules and isinstance(self.model, sys.modules["torch"].nn.Module)

    def is_compiled(self) -> bool:
        """Return whether hooks on modules would make torch.compile compile the model again."""
        compiled = getattr(self.model, "_compiled_call_impl", None) is not None
        return compiled or hasattr(self.model, "_orig_mod")


class Moment(NamedTuple):
    """A step of the training, or a batch of an evaluation, with what the loop hands over of it."""

    batch: Any = None
    loss: Any = None
    scaler: Any = None
    outputs: Any = None  # of the model: logits, or what holds them as `logits`
    augmentation: Any = None  # the random parameters that were drawn for the batch
    latents: Any = None  # of a diffusion model, after scaling
    condition_dropped: Any = None  # whether the condition of each sample was dropped
    boxes: tuple[int, int] | None = None  # of a detector, before and after suppression
    features: tuple[Any, Any] | None = None  # of real and of generated samples: samples x dimensions

    def logits(self) -> "torch.Tensor | None":
        """Return the logits among the outputs: samples x ... x classes."""
        outputs = self.outputs
        if isinstance(outputs, Mapping) and "logits" in outputs:
            outputs = outputs["logits"]
        logits: Any = getattr(outputs, "logits", outputs)
        return logits if hasattr(logits, "softmax") and logits.ndim > 1 else None

    def labels(self) -> "torch.Tensor | None":
        """Return the labels of the batch: those of that name, else its last tensor of integers."""
        batch = self.batch
        if isinstance(batch, Mapping):
            return batch.get("labels", batch.get("label"))
        last: Any = batch[-1] if isinstance(batch, list | tuple) and len(batch) > 1 else None
        return last if hasattr(last, "is_floating_point") and not last.is_floating_point() else None


class ProbeSet:
    """One family of numbers. Its module's docstring is its page.

    ``shows`` says what each number is, by name; `<layer>` and `<group>` stand for one of many. ``entries``
    are the catalogue entries that the numbers make sure. A set may look at the training only while it is
    armed: from just before a step that is measured to its end. It never draws random numbers and never
    changes a tensor of the training. One that does not ask for torch works on arrays of NumPy as well.
    """

    shows: ClassVar[Mapping[str, str]]
    entries: ClassVar[Sequence[str]]
    cost: ClassVar[Cost]
    on_every_rank: ClassVar[bool]
    needs_torch: ClassVar[bool]

    def __init_subclass__(
        cls,
        shows: Mapping[str, str],
        entries: Sequence[str],
        cost: Cost = Cost.CHEAP,
        on_every_rank: bool = False,
        needs_torch: bool = True,
    ) -> None:
        cls.shows = shows
        cls.entries = entries
        cls.cost = cost
        cls.on_every_rank = on_every_rank
        cls.needs_torch = needs_torch

    def __init__(self, subject: Subject) -> None:
        self.subject = subject

    def arm(self) -> None:
        """Prepare for the step that begins. Raises Unsuitable if the training cannot be measured."""

    def glance(self, moment: Moment) -> None:
        """Note a step, measured or not, by what lies on the host. Most sets do not."""

    def measure(self, moment: Moment) -> Numbers:
        """Return the numbers of the step that ended; none of what it cannot know. Raises Unsuitable."""
        return {}

    def evaluate(self, moment: Moment) -> None:
        """Take a batch of an evaluation into account. Most sets do not."""

    def evaluated(self) -> Numbers:
        """Return the numbers of the evaluation that ended, of whose batches nothing is kept."""
        return {}

    def disarm(self) -> None:
        """Take back what `arm` put in place. May be called twice."""


@dataclass
class Hooks:
    """Hooks that are removed together. `raise_failure` raises what one raised; the training goes on."""

    handles: list[Any] = field(default_factory=list)
    failure: Exception | None = None

    def add(self, register: Callable[..., Any], hook: Callable[..., None]) -> None:
        """Hand a guarded hook to torch's ``register``, and keep the handle."""

        def guarded(*arguments: Any) -> None:
            if self.failure is None:
                try:
                    with deadline():
                        hook(*arguments)
                except Exception as error:  # noqa: BLE001  a defect of a probe must not end the training
                    self.failure = error

        self.handles.append(register(guarded))

    def raise_failure(self) -> None:
        """Raise what a hook raised, if one did."""
        if self.failure is not None:
            raise self.failure

    def remove(self) -> None:
        """Remove all hooks."""
        while self.handles:
            self.handles.pop().remove()


def arrival() -> Callable[[], object]:
    """Return the event of copies on their way from a CUDA device; a step later they have arrived."""
    if "torch" not in sys.modules or not sys.modules["torch"].cuda.is_initialized():
        return lambda: None
    event = sys.modules["torch"].cuda.Event()
    event.record()
    return lambda: event.synchronize()


def is_on_host(numbers: Any) -> bool:
    """Return whether these can be read without waiting for a device: of torch, of NumPy, or of Python."""
    is_host: bool = getattr(numbers, "is_cpu", isinstance(numbers, np.ndarray | float | int))
    return is_host
