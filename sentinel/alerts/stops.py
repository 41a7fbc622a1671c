"""Records which runs are not judged at present, and why."""

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
    """The stops in a database. Every method raises StateError if the database fails."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def all(self) -> dict[str, Stop]:
        """All stops by run id, the latest first."""
        rows = self._database.rows("SELECT run, path, reason, since FROM stopped ORDER BY since DESC, run")
        return {row[0]: Stop(*row) for row in rows}

    def set(self, run: str, path: str, reason: str | None, now: float) -> None:
        """Record why a run is not judged; None removes its stop."""
        with self._database.transaction() as connection:
            connection.execute("DELETE FROM stopped WHERE run = ?", (utf8(run),))
            if reason is not None:
                row = (utf8(run), utf8(path), utf8(reason), now)
                connection.execute("INSERT INTO stopped VALUES (?, ?, ?, ?)", row)
