"""What one state directory holds, as it was last read."""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from sentinel.calibration.calibration import Calibration
from sentinel.common.errors import StateError
from sentinel.common.text import clean_text
from sentinel.detectors.run_checks import SiblingRange
from sentinel.report.status import KnownRun, Status, status
from sentinel.run_pipeline import bands_of
from sentinel.runs.log import StoredRun
from sentinel.runs.state_codec import unpacked
from sentinel.series.thumbnails import OBJECTIVES, Lead, Outline, onset_in, outlines
from sentinel.storage.store import RunRow, Store

_REFRESH_SECONDS = 10.0  # between two reads of an unchanged state: time alone changes the state of a run


class StateCache:
    """A state directory that is only read. Belongs to the thread that made it.

    What is stored of each run is decoded once for each commit.
    """

    def __init__(self, state_dir: Path, promise: Calibration | None) -> None:
        self.location = state_dir
        self._promise = promise
        self.store = Store(state_dir, read_only=True)
        self.status: Status | None = None
        self.failure = ""  # why the status may be old; empty if it is not
        self._version = -1  # of the store, as of the last refresh
        self._refreshed_at = float("-inf")
        self._runs: dict[str, tuple[float, StoredRun | None, _Outlines]] = {}

    def refresh(self, now: float, awake: float) -> bool:
        """Read again if the watch recorded something or some time has passed. Return whether it was read."""
        try:
            version = self.store.version()
            if version == self._version and awake - self._refreshed_at < _REFRESH_SECONDS:
                return False
            self._version = version
            self._refreshed_at = awake
            self.status = status(self.store, self.location, now, read_run=self._run, promise=self._promise)
            self.failure = ""
        except StateError as error:
            self.failure = str(error)
        return True

    def holds(self, runs: Sequence[KnownRun]) -> Iterator[str]:
        """Yield the ids of those of these runs that were read here."""
        recorded_runs = {id(run) for run in self.status.runs} if self.status else ()
        yield from (run.row.id for run in runs if id(run) in recorded_runs)

    def lead(self, row: RunRow, onsets: Mapping[str, int]) -> Lead:
        """Return the rough curve of the first of these tags, else of the objective. ``onsets`` has the step
        at which the trouble of each tag began.
        """
        curves = self._runs[row.id][2]
        objectives = (
            tag
            for signal in OBJECTIVES
            for tag, curve in curves.items()
            if curve.signal == signal and curve.values
        )
        tag = next((tag for tag in onsets if tag in curves), None) or next(objectives, None)
        if tag is None:
            return Lead()
        program = (row.format, frozenset(curves))
        onset = onset_in(curves[tag].steps, onsets.get(tag))
        return Lead(clean_text(tag, 60), curves[tag].values, program, onset)

    def bands(self, run: str) -> Mapping[str, SiblingRange]:
        """Return the bands of the siblings of a run, by tag, as the watch last drew them."""
        try:
            return bands_of(unpacked(self.store.run_state(run) or b""))
        except (ValueError, TypeError):  # damaged, or in the form of another version
            return {}

    def _run(self, row: RunRow) -> StoredRun | None:
        """Return what is stored of a run; None if it cannot be decoded."""
        if row.id not in self._runs or self._runs[row.id][0] != row.updated:
            self._runs[row.id] = row.updated, *self._decoded(row)
        return self._runs[row.id][1]

    def _decoded(self, row: RunRow) -> "tuple[StoredRun | None, _Outlines]":
        try:
            run_state = unpacked(self.store.run_state(row.id) or b"")
            stored = StoredRun.from_state(run_state)
        except ValueError:
            return None, {}
        try:
            return stored, outlines(run_state.get("streams", {}))
        except Exception:  # noqa: BLE001  histories in another form; the watch reads the log anew
            return stored, {}


_Outlines = Mapping[str, Outline]
