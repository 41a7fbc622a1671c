"""The runs that are not judged, for as long as they are not, and why."""

from dataclasses import dataclass

from sentinel.alerts.database import Database, utf8


@dataclass(frozen=True)
class Stop:
    """Why a run is not judged, and since when."""

    run: str
    path: str
    reason: str
    since: float


class Stops:
    """Those in a database. Every method raises StateError where the database fails."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def all(self) -> dict[str, Stop]:
        """By run id, the latest first."""
        rows = self._database.rows("SELECT run, path, reason, since FROM stopped ORDER BY since DESC, run")
        return {row[0]: Stop(*row) for row in rows}

    def set(self, run: str, path: str, reason: str | None, now: float) -> None:
        """Say why a run is not judged; None if it is."""
        with self._database.transaction() as connection:
            connection.execute("DELETE FROM stopped WHERE run = ?", (utf8(run),))
            if reason is not None:
                row = (utf8(run), utf8(path), utf8(reason), now)
                connection.execute("INSERT INTO stopped VALUES (?, ?, ?, ?)", row)
