"""Where a run lies: a path on this machine, or an address elsewhere."""

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Self

_ADDRESS = re.compile(r"(?P<scheme>[a-z][a-z0-9+.-]+)://(?P<rest>.*)", re.DOTALL)


@dataclass(frozen=True)
class Url:
    """An address such as ``wandb://team/project``, with ``parts`` and ``name`` as a path has them."""

    scheme: str
    parts: tuple[str, ...]

    @classmethod
    def parse(cls, text: str) -> Self | None:
        """The address that the text is; None if it is none, but a path."""
        found = _ADDRESS.fullmatch(text)
        return cls(found["scheme"], tuple(filter(None, found["rest"].split("/")))) if found else None

    def __str__(self) -> str:
        return f"{self.scheme}://{'/'.join(self.parts)}"

    def __truediv__(self, below: str) -> "Url":
        return Url(self.scheme, (*self.parts, *below.split("/")))

    @property
    def name(self) -> str:
        """The last part."""
        return self.parts[-1]


Place = Path | Url
