"""Where the logs of an archive lie, and how a worker gets at them."""

from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager
from typing import NamedTuple, Protocol

from sentinel.archives.parts import ListedFile, Part
from sentinel.sources.base import ReadIssue, Run


class OpenPart(NamedTuple):
    """The runs of a part with their names, and what could not be searched for runs."""

    runs: Sequence[tuple[Run, str]]
    read_issues: Sequence[ReadIssue]


class ArchiveSource(Protocol):
    """Where the logs of an archive lie. It can be pickled."""

    def listed(self, complaints: list[str], /) -> Iterator[ListedFile]:
        """Return all files, once; see `parts` for their order. What cannot be listed becomes a complaint.

        Raises SentinelError if there is nothing at all.
        """
        ...

    def opened(self, part: Part) -> AbstractContextManager[OpenPart]:
        """Open the runs of a part, which can be read within the context.

        Raises SentinelError with a reason.
        """
        ...
