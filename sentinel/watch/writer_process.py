"""What a watch knows of the process that writes one log."""

import math
from collections.abc import Sequence

import msgspec

from sentinel.processes.activity import Activity
from sentinel.processes.exits import Handle
from sentinel.processes.finder import LogWriter
from sentinel.processes.hang_sampling import HangSampling
from sentinel.processes.printed import OutputFile
from sentinel.processes.ranks import Team
from sentinel.processes.write_rate import WriteRate
from sentinel.watch.watched import WatchedRun

FIRST_PAUSE_SECONDS = 5.0
"""Between two searches for the process of a run; after each, twice as long."""

_INACTIVE_SECONDS = 30.0  # of a log, after which its process is observed


class WriterProcess(msgspec.Struct):
    """What is known of the process that writes the log of one run. Times are times awake."""

    search_at: float
    pause_seconds: float = FIRST_PAUSE_SECONDS
    log_writer: LogWriter | None = None
    handle: Handle | None = None  # runs of one process share it
    output: Sequence[OutputFile] = ()
    names: Sequence[str] = ()  # that the process and the one that launched the ranks have on this machine
    working_directory: str = ""
    write_rate: WriteRate | None = None
    write_rate_at: float = -math.inf  # when points arrived before it was refreshed last
    team: Team = msgspec.field(default_factory=Team)
    meet_at: float = -math.inf
    sampling: HangSampling | None = None
    sampling_points: int = -1  # points of the run when the sampling began
    sampling_at: float = -math.inf
    reported: bool = True  # whether the result of the sampling was asked for since it is there
    activity: tuple[int, Activity] | None = None  # points of an inactive run, and what it does since

    @property
    def handle_count(self) -> int:
        """The handles that are open for it and for its ranks."""
        return len(self.team.descriptors) + (self.handle is not None)

    def is_to_meet(self, awake: float) -> bool:
        """Return whether its ranks are to be searched for again."""
        return self.handle is not None and awake >= self.meet_at

    def forget(self) -> None:
        """Let the process be searched for anew, because the run may continue in another one."""
        self.log_writer = None
        self.handle = None
        self.write_rate = None
        self.search_at = -math.inf
        self.pause_seconds = FIRST_PAUSE_SECONDS

    def observe(self, watched: WatchedRun, awake: float) -> None:
        """Begin to observe what the process does, once its log has been inactive for a while."""
        points = watched.run_pipeline.log.metadata.points
        is_new = self.activity is None or self.activity[0] != points
        if self.handle is not None and is_new and awake - watched.arrived_at > _INACTIVE_SECONDS:
            self.activity = points, Activity(self.handle.process, awake)

    def note(self, watched: WatchedRun) -> None:
        """Note in what is known of a run which process writes its log, and where that works."""
        metadata = watched.run_pipeline.log.metadata
        if self.handle is not None and metadata.writers != [*self.names]:
            metadata.writers = [*self.names]
            metadata.working_directory = self.working_directory
            watched.uncommitted += 1

    def does(self, points: int, awake: float) -> str:
        """Return in words what the process has done since its log became inactive; may be empty."""
        return self.activity[1].words(awake) if self.activity and self.activity[0] == points else ""
