"""A replay that is kept: whoever asks again has only those runs judged anew whose files changed."""

import os
import threading
from collections.abc import Collection, Iterator, Sequence
from pathlib import Path

from sentinel.common.paths import is_directory
from sentinel.config.judging import JudgingConfig
from sentinel.pipeline import Pipeline
from sentinel.replays.judged import JudgedRun
from sentinel.replays.replay import Replay
from sentinel.replays.replaying import coverage_of, groups, judged, simulate_notifications
from sentinel.replays.siblings import compare_siblings
from sentinel.sources.base import Run
from sentinel.sources.discovery import common_path, discover, run_name
from sentinel.sources.location import Location

_MAX_FILES_STAMPED = 2000  # of one run, whose sizes and times are read
_MAX_FOLDER_LEVELS = 3  # of directories below that of a run

Stamp = tuple[object, ...]
"""Equal while no file of a run has changed; an empty one is equal to none."""


class KeptReplay:
    """The runs under some paths, judged without decisions about time. It may be asked from any thread."""

    def __init__(self, config: JudgingConfig, paths: Sequence[Location]) -> None:
        self._config = config
        self._paths = paths
        self._pipeline = Pipeline(config.enabled_detectors, config.parameters, config.signals)
        self._stamps: dict[str, Stamp] = {}
        self._runs: dict[str, JudgedRun] = {}
        self._replay: Replay | None = None
        self._lock = threading.Lock()

    def replay(self) -> Replay:
        """Return the replay of the runs as they are now: the same object if nothing changed.

        Raises SentinelError if no path exists.
        """
        with self._lock:
            discovered = discover(self._paths, are_over=True, forms=self._config.forms)
            read_issues = discovered.complained()
            logs = {str(run.path) for run in discovered.runs}
            stamps = {run.id: _stamp(run, logs) for run in discovered.runs}
            changed = [
                run
                for run in discovered.runs
                if not stamps[run.id] or stamps[run.id] != self._stamps.get(run.id)
            ]
            if self._replay is not None and not changed and stamps.keys() == self._stamps.keys():
                return self._replay
            self._judge_changed(changed)
            self._runs = {run: judged_run for run, judged_run in self._runs.items() if run in stamps}
            self._stamps = stamps
            runs = [self._runs[run.id] for run in discovered.runs if run.id in self._runs]
            changed_ids = {run.id for run in changed}
            compare_siblings(self._pipeline, runs, compared=self._runs.keys() - changed_ids)
            simulate_notifications(runs, self._config.policies)
            coverage = coverage_of(self._pipeline, runs, read_issues)
            self._replay = Replay(runs, read_issues, self._pipeline, coverage, unread=discovered.unread)
            return self._replay

    def _judge_changed(self, changed: Sequence[Run]) -> None:
        base = common_path(self._paths)
        named_runs = [(run, run_name(run, base)) for run in changed]
        for run in changed:
            self._runs.pop(run.id, None)
        for group in groups(named_runs):
            for judged_run in judged(self._pipeline, group, means=True):
                self._runs[judged_run.run_pipeline.id] = judged_run


def _stamp(run: Run, logs: Collection[str]) -> Stamp:
    """Return the sizes and the times of the files of a run and beside it; empty for a run elsewhere.

    ``logs`` are the paths of all runs, of which those of the others do not count.
    """
    log_paths = [path for path in (run.local, *run.also) if isinstance(path, Path)]
    if run.local is None or not log_paths:
        return ()
    tops = {path if is_directory(path) else path.parent for path in log_paths}
    run_path = str(run.path)
    log_files = (log_file for top in tops for log_file in _scanned_directories(str(top), 0))
    return tuple(
        sorted(log_file for log_file in log_files if log_file[0] == run_path or log_file[0] not in logs)
    )


def _scanned_directories(directory: str, level: int) -> Iterator[tuple[str, int, int]]:
    try:
        with os.scandir(directory) as scanned:
            entries = [*scanned][:_MAX_FILES_STAMPED]
    except OSError:
        return
    for entry in entries:
        try:
            if not entry.is_dir(follow_symlinks=False):
                status = entry.stat()
                yield entry.path, status.st_size, status.st_mtime_ns
            elif level < _MAX_FOLDER_LEVELS:
                yield from _scanned_directories(entry.path, level + 1)
        except OSError:
            continue
