"""What a set of probes is. torch comes from the environment of the training; an import does without it."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar

if TYPE_CHECKING:
    import torch

Numbers = Mapping[str, "torch.Tensor | float"]
"""What a set measured, by name. A tensor has one element and may still be on a device."""


class Unsuitable(Exception):
    """A set cannot measure this training. The message says why."""


@dataclass(frozen=True)
class Subject:
    """The training that is probed."""

    model: "torch.nn.Module"
    optimizers: "Sequence[torch.optim.Optimizer]"

    def groups(self) -> Iterator[tuple[str, Mapping[str, Any]]]:
        """The parameter groups of all optimizers, each by its own name, else by its number."""
        groups = [group for optimizer in self.optimizers for group in optimizer.param_groups]
        for number, group in enumerate(groups):
            yield str(group.get("name", number)), group

    def optimized(self) -> "Iterator[torch.Tensor]":
        """The parameters that an optimizer holds and may change."""
        for _, group in self.groups():
            yield from (one for one in group["params"] if one.requires_grad)


@dataclass(frozen=True)
class Moment:
    """A step that has just ended, with what the loop hands over of it."""

    batch: Any = None
    loss: Any = None
    scaler: Any = None


class ProbeSet:
    """One family of numbers. Its module's docstring is its page.

    ``shows`` says what each number is, by name; `<layer>` and `<group>` stand for one of many. ``entries``
    are the catalogue entries that the numbers make sure. A set may look at the training only while it is
    armed: from just before a step that is measured to its end. It never draws random numbers and never
    changes a tensor of the training.
    """

    shows: ClassVar[Mapping[str, str]]
    entries: ClassVar[Sequence[str]]

    def __init_subclass__(cls, shows: Mapping[str, str], entries: Sequence[str]) -> None:
        cls.shows, cls.entries = shows, entries

    def __init__(self, subject: Subject) -> None:
        self.subject = subject

    def arm(self) -> None:
        """Prepare for the step that begins. Raises Unsuitable if the training cannot be measured."""

    def measure(self, moment: Moment) -> Numbers:
        """The numbers of the step that ended; none of what it cannot know. Raises Unsuitable."""
        raise AssertionError(f"{type(self).__name__} measures nothing at {moment}")

    def disarm(self) -> None:
        """Take back what `arm` put in place. May be called twice."""


@dataclass
class Hooks:
    """Handles of hooks that are removed together."""

    handles: list[Any] = field(default_factory=list)

    def add(self, handle: Any) -> None:
        """Keep the handle that torch gave for a hook."""
        self.handles.append(handle)

    def remove(self) -> None:
        """Remove all hooks."""
        while self.handles:
            self.handles.pop().remove()
