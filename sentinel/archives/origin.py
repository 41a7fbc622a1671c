"""Where the logs of an archive lie, and how a worker gets at them."""

from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager
from typing import NamedTuple, Protocol

from sentinel.archives.parts import ListedFile, Part
from sentinel.sources.base import ReadIssue, Run
from sentinel.sources.console.line_forms import LineForm


class OpenPart(NamedTuple):
    """The runs of a part with their names, and what could not be searched for runs."""

    runs: Sequence[tuple[Run, str]]
    read_issues: Sequence[ReadIssue]


class ArchiveSource(Protocol):
    """Where the logs of an archive lie. It can be pickled."""

    def listed(self, read_issues: list[str], /) -> Iterator[ListedFile]:
        """Return all files, once; see `parts` for their order. What cannot be listed becomes a read issue.

        Raises SentinelError if there is nothing at all.
        """
        ...

    def opened(self, part: Part, forms: Sequence[LineForm] = ()) -> AbstractContextManager[OpenPart]:
        """Open the runs of a part, which can be read within the context.

        ``forms`` are forms of lines that a person named: a text that has one is a console.
        Raises SentinelError with a reason.
        """
        ...
