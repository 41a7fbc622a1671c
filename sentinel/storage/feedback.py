"""What people said of incidents, and the pages that a calibration counts."""

from sentinel.calibration.calibration import Opinion, PageSent
from sentinel.storage.database import Database


class Feedback:
    """The opinions in a database. Every method raises StateError if the database fails."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def add(self, incident: str, detector: str, verdict: Opinion, note: str, now: float) -> None:
        """Record an opinion about an incident, by its id, in place of an earlier one."""
        row = (incident, detector, verdict, note, now)
        with self._database.transaction(durable=True) as connection:
            connection.execute("INSERT OR REPLACE INTO feedback VALUES (?, ?, ?, ?, ?)", row)

    def counts(self) -> dict[tuple[str, str], int]:
        """Return how many incidents were useful and how many false alarms, by detector and opinion."""
        query = "SELECT detector, verdict, count(*) FROM feedback GROUP BY 1, 2 ORDER BY 1, 2"
        return {(detector, verdict): count for detector, verdict, count in self._database.rows(query)}

    def verdicts(self) -> dict[str, str]:
        """Return the opinions by incident id."""
        return dict(self._database.rows("SELECT incident, verdict FROM feedback"))

    def useful_runs(self) -> list[str]:
        """Return the runs of which somebody called an incident useful, whether or not it was sent."""
        query = (
            "SELECT DISTINCT run FROM incidents JOIN feedback ON feedback.incident = id "
            "WHERE verdict = 'useful' ORDER BY run"
        )
        return [run for (run,) in self._database.rows(query)]

    def pages(self, since: float) -> list[PageSent]:
        """Return the pages that were sent since a time, in seconds since the epoch, each with the opinion
        about it: one page for each incident and day.
        """
        query = (
            "SELECT run, id, json_extract(incident, '$.detector'), "
            "coalesce(json_extract(incident, '$.variant'), ''), at, "
            "coalesce((SELECT verdict FROM feedback WHERE feedback.incident = id), '') "
            "FROM (SELECT incident AS incident_id, min(at) AS at FROM pages "
            "WHERE at >= ? GROUP BY incident, day) "
            "JOIN incidents ON id = incident_id WHERE json_valid(incident) ORDER BY at, id"
        )
        return [PageSent(*row) for row in self._database.rows(query, since)]
