"""A log that two readers may read: that of its format, and the general one, which asks for no known form.

What a file holds when it is found decides which one begins. A file that is just being rewritten may look like
a log of no format, so a cursor is read on by the reader that made it, unless this one leaves it to the other.
"""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from msgspec.structs import replace

from sentinel.sources.base import Chunk, Cursor, Flushable, PollResult, Source, stopped


@dataclass(frozen=True)
class TwoReaders(ABC):
    """One file. ``is_general`` says that the general reader begins."""

    path: Path
    is_general: bool

    @abstractmethod
    def reader(self, is_general: bool) -> Source:
        """Return the general reader or that of the format."""

    def poll(self, cursor: Cursor, limit: int) -> PollResult:
        """Return what was written since ``cursor``; see `sentinel.sources.base.Source`."""
        is_general = cursor.get("is_general", self.is_general)
        batch = self.reader(is_general).poll(cursor, limit)
        if stopped(batch.cursor) and "is_general" not in cursor:
            return batch  # nothing was read, so either may begin
        return replace(batch, cursor={"is_general": is_general, **batch.cursor})

    def flush(self, cursor: Cursor) -> Sequence[Chunk]:
        """Return what only the end makes sure; see `sentinel.sources.base.Flushable`."""
        reader = self.reader(cursor.get("is_general", self.is_general))
        return reader.flush(cursor) if isinstance(reader, Flushable) else ()
