"""The ``trainer_state.json`` of Hugging Face's Trainer, which is saved with every checkpoint.

An output directory with its checkpoints is one run. The state that was saved last counts. The modification
times tell which one that is, but a copy may lose them. So if one state is the beginning of another, the other
one counts as newer, whatever the times say. And if all were written at once, the furthest one does: a copy
may hold a checkpoint of an earlier training, too.
"""

import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec

from sentinel.common.lazy_pattern import lazy_pattern
from sentinel.common.paths import is_file
from sentinel.sources.base import Cursor, Ending, EndKind, PollResult, ReadIssue, Run
from sentinel.sources.json.documents import BrokenError, begins_with, load, parse_new
from sentinel.sources.readers.files import open_log, stamp
from sentinel.sources.readers.growing import nothing_new, unreadable

FORMAT = "trainer_state"
written_at_checkpoints = True

STATE = "trainer_state.json"
"""The name of the file."""

_CHECKPOINT = lazy_pattern(r"checkpoint-(\d+|best|last|final)|(best|last)-checkpoint")
_GLOBAL_STEP = lazy_pattern(rb'"global_step":\s*(\d{1,18})\b')
_AT_ONCE = 10 * 10**9  # nanoseconds in which a copy writes all states, and a training saves few
_HEAD_BYTES = 4096  # of a state; its keys are sorted, so "global_step" stands among the first
_TRAINER_SETTINGS = (
    *("max_steps", "num_train_epochs", "train_batch_size"),
    *("logging_steps", "eval_steps", "save_steps"),
)


def find(directory: Path, names: Sequence[str]) -> Iterator[Run]:
    """Yield the run whose state, or the state of whose checkpoint, lies in this directory."""
    if STATE in names:
        output = directory.parent if _CHECKPOINT.fullmatch(directory.name) else directory
        yield Run(output, FORMAT, TrainerState(output))


class TrainerState(msgspec.Struct, frozen=True):
    """The states in one output directory."""

    directory: Path

    def poll(self, cursor: Cursor, limit: int) -> PollResult:
        """Return the entries that were logged since ``cursor``; see `sentinel.sources.base.Source`."""
        try:
            paths = self._newest_first()
            newest = stamp(paths[0]) if paths else None
        except OSError as error:
            return unreadable(self.directory, cursor, error)
        if newest is None or newest == cursor.get("newest") or _was_outlived(newest, cursor.get("newest")):
            return nothing_new(cursor)
        complaints: list[ReadIssue] = []
        for path in paths[:1] if cursor.get("entries") else paths:  # an older state has nothing new
            try:
                state = load(path)
                if _is_state(state):
                    state = _longest(state, path, paths)
                    break
            except OSError as error:
                return unreadable(path, cursor, error)
            except BrokenError as error:
                complaints.append(error.complaint)
        else:
            refused = {"refused": complaints[0].problem} if complaints else {}
            return PollResult({**cursor, "newest": newest, **refused}, read_issues=complaints)
        plan = settings(state)
        steps = {name: plan[name] for name in ("max_steps",) if name in plan}
        new_cursor, chunks, more = parse_new(cursor, state["log_history"], limit, STATE, steps)
        ending = None if more else _ending_of_state(state)
        return PollResult(
            {**new_cursor, "newest": None if more else newest}, chunks, complaints, more, plan, ending
        )

    def _newest_first(self) -> list[Path]:
        """Return the states, the one that was saved last first."""
        with os.scandir(self.directory) as entries:
            folders = [Path(entry.path) for entry in entries if _CHECKPOINT.fullmatch(entry.name)]
        paths = [folder / STATE for folder in (self.directory, *folders)]
        times = {path: path.stat().st_mtime_ns for path in paths if is_file(path)}
        if len(times) > 1 and max(times.values()) - min(times.values()) < _AT_ONCE:
            return sorted(times, key=lambda path: (_state_progress(path), path), reverse=True)
        return sorted(times, key=lambda path: (times[path], path), reverse=True)


def _was_outlived(newest: Sequence[Any], read: Sequence[Any] | None) -> bool:
    """Return whether the state that was read is gone, so that an older one is now the newest.

    At the end of a training, Trainer may delete its last checkpoint and keep the best.
    """
    return read is not None and newest[0] != read[0] and newest[-1] < read[-1]


def _longest(state: Any, path: Path, paths: Sequence[Path]) -> Any:
    """Return the state at ``path``, or the longest state that continues it."""
    furthest = max(paths, key=_state_progress)
    if _state_progress(furthest) == _state_progress(path):
        return state
    try:
        other = load(furthest)
    except (OSError, BrokenError):
        return state
    goes_on = _is_state(other) and begins_with(other["log_history"], state["log_history"])
    return other if goes_on else state


def _state_progress(path: Path) -> tuple[int, int]:
    """Return the step and the size of the state. A log after the last step makes it longer."""
    try:
        with open_log(path) as file:
            step = _GLOBAL_STEP.search(file.read(_HEAD_BYTES))
            return int(step[1]) if step else -1, os.fstat(file.fileno()).st_size
    except OSError:
        return -1, 0


def _is_state(document: Any) -> bool:
    return isinstance(document, dict) and isinstance(document.get("log_history"), list)


def _ending_of_state(state: Mapping[str, Any]) -> Ending | None:
    """Return that the training reached its last step, which need not be one that it logs."""
    step = state.get("global_step")
    last = state.get("max_steps")
    if not isinstance(step, int) or step != last or step <= 0:
        return None
    return Ending(EndKind.FINISHED, f"its state was saved at step {step}, the last one", inferred=True)


def settings(state: Mapping[str, Any]) -> dict[str, float]:
    """Return the planned values in the state. A number that means "no limit" is left out."""
    values = {name: state.get(name) for name in _TRAINER_SETTINGS}
    return {n: v for n, v in values.items() if isinstance(v, (int, float)) and 0 < v < sys.maxsize // 2}
