"""The lines that a training printed, kept as texts until somebody looks at one of them."""

from collections.abc import Sequence
from typing import overload

from sentinel.sources.base import Line
from sentinel.sources.console.lines import seconds


class Passages(Sequence[Line]):
    """Lines in their order. To make a `Line` of each would cost more than to read them all."""

    def __init__(self) -> None:
        self.texts: list[str] = []
        self.steps: list[int | None] = []

    def add(self, texts: Sequence[str], step: int | None) -> None:
        """Add lines that follow this step."""
        self.texts += texts
        self.steps += [step] * len(texts)

    def __len__(self) -> int:
        return len(self.texts)

    @overload
    def __getitem__(self, at: int) -> Line: ...

    @overload
    def __getitem__(self, at: slice) -> Sequence[Line]: ...

    def __getitem__(self, at: int | slice) -> Line | Sequence[Line]:
        if isinstance(at, slice):
            return [self[i] for i in range(*at.indices(len(self)))]
        return Line(seconds(self.texts[at]), self.texts[at], self.steps[at])
