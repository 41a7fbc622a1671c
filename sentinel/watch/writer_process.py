"""What a watch knows of the process behind one log."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

from sentinel.processes.activity import Activity
from sentinel.processes.exits import Handle
from sentinel.processes.finder import Found
from sentinel.processes.hang_sampling import HangSampling
from sentinel.processes.printed import OutputFile
from sentinel.processes.ranks import Team
from sentinel.processes.write_rate import WriteRate
from sentinel.watch.watched import WatchedRun

FIRST_PAUSE_SECONDS = 5.0
"""Between two searches for the process of a run; after each, twice as long."""

_SILENT_SECONDS = 30.0  # of a log, after which its process is watched


@dataclass(slots=True)
class WriterProcess:
    """What is known of the process behind the log of one run. Times are times awake."""

    search_at: float
    pause: float = FIRST_PAUSE_SECONDS
    found: Found | None = None
    handle: Handle | None = None  # runs of one process share it
    output: Sequence[OutputFile] = ()
    growth: WriteRate | None = None
    grown_at: float = -math.inf
    team: Team = field(default_factory=Team)
    meet_at: float = -math.inf
    examination: HangSampling | None = None
    examined: tuple[int, float] = -1, -math.inf  # points of the run, and when it was
    reported: bool = True  # whether its result was asked for since it is there
    activity: tuple[int, Activity] | None = None  # points of a run that is silent, and what it does since

    def observe(self, watched: WatchedRun, awake: float) -> None:
        """Begin to watch what the process does, once its log has been silent for a while."""
        points = watched.run_pipeline.log.metadata.points
        new = self.activity is None or self.activity[0] != points
        if new and self.handle is not None and awake - watched.arrived_at > _SILENT_SECONDS:
            self.activity = points, Activity(self.handle.process, awake)

    def does(self, points: int, awake: float) -> str:
        """Return what the process has done since its log fell silent."""
        return self.activity[1].words(awake) if self.activity and self.activity[0] == points else ""
