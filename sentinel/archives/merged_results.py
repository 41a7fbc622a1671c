"""The results of several archives, read as those of one."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from sentinel.archives.record import Glance, PackedCourses, Record
from sentinel.archives.results import Results, Row
from sentinel.archives.tables import IncidentColumns


class MergedResults:
    """The results of several directories. Nothing is written to any of them.

    The key of a part begins with the number of its directory. Of a run that is in several, the
    last one counts.
    """

    def __init__(self, directories: Sequence[Results]) -> None:
        self._directories = directories

    def parts(self) -> list[str]:
        """Return the keys of all parts. Raises SentinelError unless all results are complete and whole."""
        return [
            f"{number}/{key}" for number, results in enumerate(self._directories) for key in results.parts()
        ]

    def packed(self, part_key: str) -> Iterator[bytes]:
        """Yield the packed records of a part, in their order."""
        archive_results, row = self._at(Row(part_key, 0))
        return archive_results.packed(row.part)

    def glance(self, row: Row) -> Glance:
        """Return what is compared among all runs, of the record in a row."""
        archive_results, row = self._at(row)
        return archive_results.glance(row)

    def record(self, row: Row) -> Record:
        """Return the record in a row, with what the table says of its owner."""
        archive_results, row = self._at(row)
        return archive_results.record(row)

    def courses(self, row: Row) -> PackedCourses:
        """Return the courses by which a run is compared with those that differ from it in one setting."""
        archive_results, row = self._at(row)
        return archive_results.courses(row)

    def sibling_rule(self) -> Mapping[str, Any] | None:
        """Return what the configuration of the first directory said of the rule about siblings."""
        rules = (results.sibling_rule() for results in self._directories)
        return next((rule for rule in rules if rule is not None), None)

    def read_issues(self) -> list[str]:
        """Return what could not be searched."""
        return [*dict.fromkeys(issue for results in self._directories for issue in results.read_issues())]

    def write_siblings(self, incident_rows: Iterable[IncidentColumns]) -> None:
        """Write nothing: what a comparison over all directories finds belongs into none of them."""

    def _at(self, row: Row) -> tuple[Results, Row]:
        directory_number, _, part_key = row.part.partition("/")
        return self._directories[int(directory_number)], Row(part_key, row.number)
