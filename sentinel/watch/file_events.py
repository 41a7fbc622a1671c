"""Tells which files changed, by the events of the kernel. Without events, every file counts as changed.

Network and user-space file systems send no events. So events are used only on kinds of file systems that are
known to send them, and everything else is polled. Events can still be lost, as in a directory behind a link
or in a full queue, so the user of this module must read everything now and then.
"""

import os
import threading
import warnings
from collections.abc import Iterable
from pathlib import Path
from typing import Self

from watchdog.events import (
    DirCreatedEvent,
    DirMovedEvent,
    FileCreatedEvent,
    FileDeletedEvent,
    FileModifiedEvent,
    FileMovedEvent,
    FileSystemEvent,
    FileSystemEventHandler,
)
from watchdog.observers import Observer
from watchdog.observers.api import BaseObserver, ObservedWatch

from sentinel.common.paths import is_directory
from sentinel.sources.base import ReadIssue
from sentinel.sources.location import fixed_part, matches
from sentinel.sources.readers.files import real_path
from sentinel.sources.readers.mounts import LOCAL_SYSTEMS, file_system

_GATHER_SECONDS = 1.0  # after the first change, so that many changes at once end one wait
_WATCHED_EVENTS: list[type[FileSystemEvent]] = [
    DirCreatedEvent,
    DirMovedEvent,
    FileCreatedEvent,
    FileDeletedEvent,
    FileModifiedEvent,
    FileMovedEvent,
]


class Changes(FileSystemEventHandler):
    """Follows paths, which need not exist yet, until its `with` block ends.

    ``polled`` is true if there are no events to wait for. ``read_issues`` says why, if the machine is the
    cause.
    """

    def __init__(self, paths: Iterable[Path], poll: bool = False) -> None:
        self.read_issues: list[ReadIssue] = []
        self._paths = [*paths]
        self._roots = self._matches()
        self._condition = threading.Condition()
        self._stopped = False
        self._rung = False
        self._changed: set[Path] = set()
        self._new_directories = True
        self._watches: dict[tuple[Path, bool], tuple[tuple[int, int], ObservedWatch]] = {}
        self._observer: BaseObserver | None = None
        fixed = (Path(real_path(fixed_part(path))) for path in self._paths)
        if not poll and all(map(sends_events, fixed)):
            self._begin_observer()

    @property
    def polled(self) -> bool:
        """Whether `wait` never knows what changed."""
        return self._observer is None

    def wait(self, seconds: float, pause_seconds: float = 0.0) -> set[Path] | None:
        """Wait at most ``seconds`` for a change. Return the files and directories that came, changed or went.

        It waits for ``pause_seconds`` unless `ring` is called, and after the first change for a moment, so
        that others are read together with it. A directory that came may hold anything. The result is empty
        if nothing changed, and None if anything may have changed. Returns at once after `stop`.
        """
        rest = max(0.0, seconds - pause_seconds)
        if self._observer is not None:
            self._watch_roots(self._observer)
        with self._condition:
            self._condition.wait_for(lambda: self._stopped or self._rung, pause_seconds)
            if self._observer is None:
                self._condition.wait_for(lambda: self._stopped or self._rung, rest)
                self._rung = False
                return None
            if self._condition.wait_for(lambda: self._changed or self._stopped or self._rung, rest):
                waited = 0.0 if self._rung else pause_seconds
                self._condition.wait_for(lambda: self._stopped, max(0.0, _GATHER_SECONDS - waited))
            changed = self._changed
            self._changed = set()
            self._rung = False
            return changed

    def stop(self) -> None:
        """End every wait, now and later. May be called from a signal handler."""
        with self._condition:
            self._stopped = True
            self._condition.notify_all()

    def ring(self) -> None:
        """End the present wait and its pause, because something else happened. Any thread may call it."""
        with self._condition:
            self._rung = True
            self._condition.notify_all()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()
        self._end()

    def on_any_event(self, event: FileSystemEvent) -> None:
        """Record an event. watchdog calls this in its own thread."""
        paths = [Path(os.fsdecode(path)) for path in (event.src_path, event.dest_path) if path]
        self._record_paths([path for path in paths if any(path.is_relative_to(root) for root in self._roots)])
        self._new_directories |= event.is_directory

    def _record_paths(self, paths: Iterable[Path]) -> None:
        with self._condition:
            self._changed.update(paths)
            self._condition.notify_all()

    def _begin_observer(self) -> None:
        # watchdog logs an error for a directory that it finds twice, but handles it.
        warnings.filterwarnings("ignore", "Callback with id", RuntimeWarning, "watchdog")
        try:
            self._observer = Observer()
            self._observer.start()
        except OSError as error:
            self._give_up(error)
        else:
            self._watch_roots(self._observer)
            self._changed.clear()

    def _end(self) -> None:
        if self._observer is not None:
            self._observer.stop()
            self._observer.join()
        self._observer = None

    def _give_up(self, error: OSError) -> None:
        self._end()
        remedy = "to have them watched, raise fs.inotify.max_user_watches and max_user_instances (sysctl)"
        problem = f"changes cannot be watched ({error.strerror}), so all files are polled; {remedy}"
        self.read_issues.append(ReadIssue(self._paths[0], "", problem))

    def _watch_roots(self, observer: BaseObserver) -> None:
        """Watch the roots that appeared or were replaced since the last time."""
        self._roots = self._matches()
        alive = {emitter.watch for emitter in observer.emitters if emitter.should_keep_running()}
        try:
            for root in self._roots:
                self._watch(root, observer, alive)
            if self._new_directories:
                # watchdog hides the error of a subdirectory for which the limit of watches is reached.
                self._new_directories = False
                observer.unschedule(observer.schedule(self, "/", event_filter=_WATCHED_EVENTS))
        except OSError as error:
            self._give_up(error)

    def _matches(self) -> list[Path]:
        """Return what the paths and their globs match now."""
        return [Path(real_path(path)) for watched_path in self._paths for path in matches(watched_path)]

    def _watch(self, root: Path, observer: BaseObserver, alive: set[ObservedWatch]) -> None:
        try:
            is_tree = is_directory(root)
            directory = root if is_tree else root.parent  # a watch on a file goes with the file
            status = os.stat(directory)
            identity = (status.st_dev, status.st_ino)
            earlier_identity, watch = self._watches.get((directory, is_tree), (None, None))
            if watch in alive and earlier_identity == identity:
                return
            if watch is not None:
                observer.unschedule(watch)
                del self._watches[directory, is_tree]
            watch = observer.schedule(self, directory, recursive=is_tree, event_filter=_WATCHED_EVENTS)
            self._watches[directory, is_tree] = (identity, watch)
        except (FileNotFoundError, NotADirectoryError):
            return
        self._new_directories = True
        self._record_paths([root])


def sends_events(path: Path, text: str | None = None) -> bool:
    """Return whether the file system of the path sends events. ``text`` is that of proc's mountinfo.

    Where no system tells its type, watchdog knows what to do.
    """
    kind = file_system(path, text)
    return not kind or kind in LOCAL_SYSTEMS
