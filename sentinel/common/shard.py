"""Parts of what several processes do together, such that each finds its part without asking the others."""

from hashlib import blake2b
from typing import Self

import msgspec


class Shard(msgspec.Struct, frozen=True):
    """One of ``count`` parts; ``index`` counts from 0."""

    index: int = 0
    count: int = 1

    @classmethod
    def parse(cls, text: str) -> Self:
        """Return the shard in a text such as 3/64. Raises ValueError for another text."""
        index, _, count = text.partition("/")
        if not (index.isdecimal() and count.isdecimal() and int(index) < int(count)):
            raise ValueError("write I/N with I from 0 to N - 1, such as 3/64")
        return cls(int(index), int(count))

    def __str__(self) -> str:
        return f"{self.index}/{self.count}"

    def holds(self, name: str) -> bool:
        """Return whether a name belongs to this shard. The answer is the same on every machine."""
        return stable_hash(name) % self.count == self.index


WHOLE = Shard()


def stable_hash(text: str) -> int:
    """Return a number below 2^64 that is the same in every process."""
    digest = blake2b(text.encode("utf-8", "surrogatepass"), digest_size=8).digest()
    return int.from_bytes(digest, "big")
