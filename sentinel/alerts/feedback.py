"""What people said of incidents: whether each was useful or a false alarm."""

from typing import Literal

from sentinel.alerts.database import Database
from sentinel.alerts.incident import Incident

Verdict = Literal["useful", "false-alarm"]


class Feedback:
    """The verdicts in a database. Every method raises StateError if the database fails."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def add(self, incident: Incident, verdict: Verdict, note: str, now: float) -> None:
        """Record a verdict in place of an earlier one."""
        row = (incident.id, incident.detector, verdict, note, now)
        with self._database.transaction(durable=True) as connection:
            connection.execute("INSERT OR REPLACE INTO feedback VALUES (?, ?, ?, ?, ?)", row)

    def counts(self) -> dict[tuple[str, str], int]:
        """How many incidents were useful and how many false alarms, by detector and verdict."""
        query = "SELECT detector, verdict, count(*) FROM feedback GROUP BY 1, 2 ORDER BY 1, 2"
        return {(detector, verdict): count for detector, verdict, count in self._database.rows(query)}

    def verdicts(self) -> dict[str, str]:
        """What was said, by incident id."""
        return dict(self._database.rows("SELECT incident, verdict FROM feedback"))
