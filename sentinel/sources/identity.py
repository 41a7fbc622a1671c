"""A run as the world outside names it: what it is called, where it lies, and what a person asks next."""

from typing import Self

import msgspec

_MAX_LABEL_CHARACTERS = 100  # of each part of a label


class Label(msgspec.Struct, frozen=True):
    """What a tracker such as W&B calls a run: the name that its pages show, and the project. A tracker of
    which neither is known leaves them empty.
    """

    name: str = ""
    project: str = ""

    @classmethod
    def of(cls, name: object, project: object) -> Self:
        """Make a label of what a log holds, which may be anything."""
        return cls(_short(name), _short(project))

    def updated(self, news: "Label") -> "Label":
        """Return the label with what is new in another one."""
        return Label(news.name or self.name, news.project or self.project)

    def beside(self, run: str) -> str:
        """Return the name of a run with its label: `run-5f3a (swift-sun-3 in rlhf)`."""
        name = "" if self.name in run else self.name
        project = f"in {self.project}" if self.project and (name or self.project not in run) else ""
        words = " ".join(filter(None, (name, project)))
        return f"{run} ({words})" if words else run


NO_LABEL = Label()
"""What a log says that no tracker wrote."""


def _short(text: object) -> str:
    """Return what is a text with one space between words, and empty for anything else."""
    plain = text.encode(errors="replace").decode() if isinstance(text, str) else ""
    return " ".join(plain.split())[:_MAX_LABEL_CHARACTERS]


class RunIdentity(msgspec.Struct, frozen=True):
    """``path`` is as it was given; ``place`` is the absolute path or the address. ``host`` is the machine on
    which the log lies, None for an address. ``planned_steps`` and ``world_size`` (processes that train
    together) are None if the settings do not say.
    ``owner`` is the user who owns the log, None for an address. ``label`` is what a tracker calls the run.
    """

    run: str = ""
    path: str = ""
    framework: str | None = None
    location: str = ""
    host: str | None = None
    planned_steps: float | None = None
    world_size: float | None = None
    owner: str | None = None
    label: Label = NO_LABEL

    @property
    def where(self) -> str:
        """Its place, as exactly as it is known."""
        return self.location or self.path
