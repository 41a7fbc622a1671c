"""A run as the world outside names it: what it is called, where it lies, and what a person asks next."""

import msgspec


class RunIdentity(msgspec.Struct, frozen=True):
    """``path`` is as it was given; ``place`` is the absolute path or the address. ``host`` is the machine on
    which the log lies, None for an address. ``planned_steps`` and ``world_size`` (processes that train
    together) are None if the settings do not say.
    ``owner`` is the user who owns the log, None for an address.
    """

    run: str = ""
    path: str = ""
    framework: str | None = None
    location: str = ""
    host: str | None = None
    planned_steps: float | None = None
    world_size: float | None = None
    owner: str | None = None

    @property
    def where(self) -> str:
        """Its place, as exactly as it is known."""
        return self.location or self.path
