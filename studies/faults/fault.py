"""What a fault is: a training that takes a strength, and what its log is expected to show."""

from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module

from studies.faults.loggers import Log, Logger

FAMILIES = ("wiring", "losses", "gradients", "schedules", "evaluation", "resuming", "policies", "preferences")
"""The modules of the faults. They import what they train with inside their functions."""

STRENGTHS = "plain", "mild", "faint"
HEALTHY = 0.0
"""The strength of a healthy twin."""

Train = Callable[[float, Log], None]


@dataclass(frozen=True)
class Fault:
    """A way to break a training.

    ``strengths`` are the numbers behind `STRENGTHS`; ``visible`` is for each the first step whose log differs
    from that of the healthy twin by more than its noise. ``catalogue`` are the entries that describe the
    fault: each is a right cause.
    """

    name: str
    title: str
    catalogue: tuple[str, ...]
    strengths: tuple[float, float, float]
    visible: tuple[int, int, int]
    logger: Logger
    train: Train


def fault(
    *catalogue: str,
    title: str,
    strengths: tuple[float, float, float],
    logger: Logger,
    visible: tuple[int, int, int] = (0, 0, 0),
) -> Callable[[Train], Fault]:
    """Make a fault of a training, which is named for its function."""
    return lambda train: Fault(
        train.__name__.replace("_", "-"), title, catalogue, strengths, visible, logger, train
    )


def all_faults() -> dict[str, Fault]:
    """Every fault by its name, in the order of `FAMILIES`."""
    modules = [import_module(f"studies.faults.{family}") for family in FAMILIES]
    found = [one for module in modules for one in vars(module).values() if isinstance(one, Fault)]
    return {one.name: one for one in found}
