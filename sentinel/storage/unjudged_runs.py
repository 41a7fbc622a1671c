"""The runs that are not judged, and why."""

import msgspec

from sentinel.storage.database import Database, utf8


class UnjudgedRun(msgspec.Struct, frozen=True):
    """Why a run is not judged, and since when."""

    run: str
    path: str
    reason: str
    since: float


class UnjudgedRuns:
    """The runs of a database that are not judged. Every method raises StateError if the database fails."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def all(self) -> dict[str, UnjudgedRun]:
        """Return them by run id, the latest first."""
        query = "SELECT run, path, reason, since FROM unjudged_runs ORDER BY since DESC, run"
        return {row[0]: UnjudgedRun(*row) for row in self._database.rows(query)}

    def set(self, run: str, path: str, reason: str | None, now: float) -> None:
        """Record why a run is not judged; None says that it is judged."""
        with self._database.transaction() as connection:
            connection.execute("DELETE FROM unjudged_runs WHERE run = ?", (utf8(run),))
            if reason is not None:
                row = (utf8(run), utf8(path), utf8(reason), now)
                connection.execute("INSERT INTO unjudged_runs VALUES (?, ?, ?, ?)", row)
