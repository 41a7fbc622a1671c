"""Which logs are of one training: the one relation that notifications, listings and reports share.

A training often writes several logs: Hugging Face's Trainer its state beside those of TensorBoard and W&B,
Lightning one for each logger, `add_scalars` of torch one directory for each curve. Equal steps and numbers
prove nothing: two trainings of one script have them as well. Logs are of one training only if something joins
them:

- the same process on the same host, as the names of event files or the end of the process state it, or the
  same writer of tensorboardX;
- the same id of W&B;
- the file into which the process printed that failed;
- the process that a watch saw write them, or that launched the ranks that do;
- the same place: one directory, or directories that differ only in names such as `tb` and `csv_logs`. A file
  with an unusual name for a log is a place of its own;
- Hugging Face's ``output_dir`` as that place: the directory of `trainer_state.json`, that above `runs/`, or
  that in the settings.

Two logs of one format are joined by W&B's id, with which a training is resumed, or by their process alone,
and by that only if they were written at the same time.
One directory may hold many trainings that followed one another, and one process may train the folds of a
cross-validation.
"""

import math
import os
from collections.abc import Iterable, Mapping
from collections.abc import Set as AbstractSet
from pathlib import Path

import msgspec
from msgspec.structs import replace

from sentinel.common.lazy_pattern import lazy_pattern
from sentinel.common.paths import is_directory
from sentinel.runs.metadata import RunMetadata
from sentinel.sources.location import Location, Url
from sentinel.sources.readers.files import real_path
from sentinel.sources.registry import format_named
from sentinel.sources.tensorboard.held_out import is_of_part
from sentinel.sources.tensorboard.names import is_event_file, writer_in

_LOG_FOLDER = lazy_pattern(
    "logs?|tb|tensorboard|csv|jsonl?|events|tfevents|summar(y|ies)|metrics|console"
    "|(tb|tensorboard|csv|lightning)_logs"
)
"""Directories that hold the logs of one kind, and say nothing about the training."""

_SAVED = lazy_pattern("out(put)?s?|checkpoints?|ckpts?")
"""Directories for what a training saves, which say nothing about it. It may log there or beside them."""

_USUAL_LOG_NAME = lazy_pattern(
    "(train(ing)?_|trainer_)?(logs?|metrics?|history|stats)|train|training|log_history|progress|run|output|out"
    "|std(out|err)|console|results|scalars|loss(es)?|nohup"
    "|(system|gpu|hardware|resource)s?(_(metrics|stats|usage|monitor))?"
)
"""Names of files that say nothing about the training either."""

_MAX_TAG_PARTS = 3  # between the slashes of a tag of `add_scalars`
_VERSION = lazy_pattern(r"version_\d+")  # directories of Lightning

_OUTPUT_SETTING = "output_dir"
"""The setting of Hugging Face's that names the place of a training."""

_ID_KEY = "id "  # what a join key begins with that is an id of W&B
_PLACE_KEY = "place "  # what a join key begins with that is a place
_WANDB = lazy_pattern(r"(?:offline-)?run-\d{8}_\d{6}-(\w+)")  # the directory of a run
_WANDB_RECORD = lazy_pattern(r"run-(\w+)\.wandb")  # its record

_WANDB_FILES = "files"
"""Where W&B keeps what was printed, beside its record. A copy of `latest-run` has no id in its name."""


class TrainingEvidence(msgspec.Struct, frozen=True):
    """What one log says of its training.

    ``join_keys`` are what it may share with other logs, ``processes`` are those among them that name a
    process. ``output`` is Hugging Face's directory, and empty if unknown. ``times`` are those of its first
    and its last point on its own clock, None if unknown.
    """

    format: str
    join_keys: frozenset[str]
    processes: frozenset[str] = frozenset()
    output: str = ""
    times: tuple[float, float] | None = None

    def until(self, metadata: RunMetadata) -> "TrainingEvidence":
        """Return the same with the times of a log that has grown."""
        return replace(self, times=_logged_times(metadata))


def is_same_training(log: TrainingEvidence, other: TrainingEvidence, surely: bool = False) -> bool:
    """Return whether two logs are of one training. Symmetric.

    With ``surely``, whether a process or W&B's id joins them: a place may have seen several trainings.
    """
    if log.format == other.format:
        both = log.processes & other.processes
        return _has_id(both) or (bool(both) and _overlap(log.times, other.times))
    if log.output and other.output and log.output != other.output:
        return False
    common = log.join_keys & other.join_keys
    return any(not (surely and key.startswith(_PLACE_KEY)) for key in common)


def trainings(logs: Mapping[str, TrainingEvidence]) -> dict[str, str]:
    """Return, by the id of each log, the id of the log that stands for its training: the first one.

    This is a union-find. The logs join in the order in which they began, so a training that ended is not
    searched again.
    """
    sets = _TrainingSets({evidence.format for evidence in logs.values()})
    in_order = sorted(logs, key=lambda log: (logs[log].times or (-math.inf,))[0])
    numbers = {log: sets.add(logs[log]) for log in in_order}
    first: dict[_TrainingLogs, str] = {}
    return {log: first.setdefault(sets.find(numbers[log]), log) for log in logs}


class _TrainingSets:
    """Disjoint sets of logs, each of one training.

    A log joins a training if it is of one training with a log there, and could be with all of its format. If
    several trainings that have no format in common take it, these are united.
    """

    def __init__(self, formats: AbstractSet[str]) -> None:
        self._formats = formats  # of all logs
        self._trainings: list[_TrainingLogs] = []  # by number; united ones are one object
        # by join key and format: the numbers of the trainings that such a log may join
        self._open: dict[tuple[str, str], list[int]] = {}

    def find(self, number: int) -> "_TrainingLogs":
        return self._trainings[number]

    def add(self, log: TrainingEvidence) -> int:
        """Put a log into the first training that takes it, or else into a new one. Return its number."""
        candidates = self._candidates(log)
        number = next(
            (
                training_number
                for training_number in candidates
                if self._trainings[training_number].takes(log)
            ),
            len(self._trainings),
        )
        if number == len(self._trainings):
            self._trainings.append(_TrainingLogs([number]))
        training = self._trainings[number]
        for other_number in candidates:
            other = self._trainings[other_number]
            if other_number > number and training.formats.isdisjoint(other.formats) and other.takes(log):
                self._unite(training, other)
        for key in training.add(log):
            formats = self._formats if key in log.processes else self._formats - training.formats
            for format_ in formats:
                self._open.setdefault((key, format_), []).append(number)
        return number

    def _candidates(self, log: TrainingEvidence) -> list[int]:
        """Return the numbers of the trainings that may take a log, each once and in order.

        Trainings that no later log of this format can join are not searched again.
        """
        candidates: set[int] = set()
        for key in log.join_keys:
            numbers = self._open.get((key, log.format), ())
            open_numbers = [
                training_number
                for training_number in numbers
                if self._trainings[training_number].may_take(log, key)
            ]
            self._open[key, log.format] = open_numbers
            candidates.update(self._trainings[training_number].numbers[0] for training_number in open_numbers)
        return sorted(candidates)

    def _unite(self, training: "_TrainingLogs", other: "_TrainingLogs") -> None:
        for number in training.join(other):
            self._trainings[number] = training


class _TrainingLogs:
    """The logs of one training, in a form that says at once whether a further log joins them."""

    def __init__(self, numbers: list[int]) -> None:
        self.numbers = numbers  # its number, then those of the trainings that were united with it
        self.join_keys: set[tuple[str, str | None]] = set()  # each with an output; None: with any
        self.processes: dict[str, set[frozenset[str]]] = {}  # by format
        self.times: dict[str, tuple[float, float]] = {}  # by format: when all logs of it were written

    def add(self, log: TrainingEvidence) -> set[str]:
        """Add a log. Return the join keys that are new."""
        new_keys = {key for key in log.join_keys if (key, None) not in self.join_keys}
        self.join_keys |= {(key, output) for key in log.join_keys for output in (log.output, None)}
        self.processes.setdefault(log.format, set()).add(log.processes)
        if log.times is not None:
            self.times[log.format] = self._common_times(log.times, log.format)
        return new_keys

    def join(self, other: "_TrainingLogs") -> list[int]:
        """Take all logs of another one, which has no format in common. Return the numbers of that one."""
        self.numbers += other.numbers
        self.join_keys |= other.join_keys
        self.processes |= other.processes
        self.times |= other.times
        return other.numbers

    @property
    def formats(self) -> AbstractSet[str]:
        return self.processes.keys()

    def may_take(self, log: TrainingEvidence, key: str) -> bool:
        """Return whether this log, or one of its format that began later, can join because of a join key."""
        if key in log.processes and _has_id((key,)):
            return True
        if log.format in self.formats and key not in log.processes:
            return False
        end = self.times.get(log.format, (0.0, math.inf))[1]
        has_log_without_process = frozenset() in self.processes.get(log.format, ())
        return not has_log_without_process and (log.times is None or end >= log.times[0])

    def takes(self, log: TrainingEvidence) -> bool:
        if log.format in self.processes:
            begin, end = self._common_times(log.times or (-math.inf, math.inf), log.format)
            common = [log.processes & others for others in self.processes[log.format]]
            return all(map(_has_id, common)) or (begin <= end and all(common))
        outputs = (log.output, "") if log.output else (None,)
        return any((key, output) in self.join_keys for key in log.join_keys for output in outputs)

    def _common_times(self, times: tuple[float, float], format_: str) -> tuple[float, float]:
        begin, end = self.times.get(format_, times)
        return max(begin, times[0]), min(end, times[1])


def trainings_of(logs: Mapping[str, RunMetadata]) -> dict[str, str]:
    """Return, by the id of each run, the first one in ``logs`` that is of its training."""
    return trainings({run: trace_of(run, metadata) for run, metadata in logs.items()})


def trace_of(run: str, metadata: RunMetadata) -> TrainingEvidence:
    """Return what the log of the run with this id says of its training. Never raises."""
    format_, _, path = run.partition(":")
    return trace(Url.parse(path) or Path(path), format_, metadata)


def trace(location: Location, format_: str, metadata: RunMetadata) -> TrainingEvidence:
    """Return what a log says of its training, with the names of the files beside it. Never raises."""
    if not isinstance(location, Path):
        return TrainingEvidence(format_, frozenset({f"id {location.parts[-1]}"}))
    writers = {
        writer["process"] if writer else f"of {_writer_directory(location)}"
        for writer in map(writer_in, _event_files(location))
    }
    output = _output(location, bool(writers), metadata)
    if metadata.exit is not None:
        writers.add(metadata.exit.evidence.partition(";")[0])  # names the process
    processes = {f"process {process}" for process in writers}
    beside = _file_names(location.parents[1]) if location.parent.name == _WANDB_FILES else ()
    ids = wandb_ids(location, beside)
    above = _home(location.parent) if _SAVED.fullmatch(location.name) else ""
    directories = {f"{_PLACE_KEY}{directory}" for directory in (_home(location), above, output) if directory}
    # What a process printed may be a log, too, wherever it lies.
    printed = metadata.output or (real_path(location) if format_named(format_).is_console else "")
    prints = {f"printed in {printed}"} if printed else set()
    written = {f"written by {writer}" for writer in metadata.writers}
    processes |= {f"log {log}" for log in (f"{format_}:{location}", metadata.original) if log}
    return TrainingEvidence(
        format=format_,
        join_keys=frozenset(processes | ids | directories | prints | written),
        processes=frozenset(processes | ids),
        output=output,
        times=_logged_times(metadata),
    )


def wandb_ids(log_path: Path, beside: Iterable[str] = ()) -> frozenset[str]:
    """Return the join keys by W&B's ids in the names of a log, and of the files ``beside`` it."""
    names = (*map(_WANDB.fullmatch, log_path.parts), *map(_WANDB_RECORD.fullmatch, (log_path.name, *beside)))
    return frozenset(f"{_ID_KEY}{match[1]}" for match in names if match)


def _has_id(keys: Iterable[str]) -> bool:
    """Return whether some join keys hold an id of W&B."""
    return any(key.startswith(_ID_KEY) for key in keys)


def _logged_times(metadata: RunMetadata) -> tuple[float, float] | None:
    """Return the times of the first and the last point."""
    if metadata.first_time is None or metadata.last_time is None:
        return None
    return metadata.first_time, metadata.last_time


def _overlap(times: tuple[float, float] | None, other: tuple[float, float] | None) -> bool:
    """Return whether two spans of time overlap; a span that is not known may."""
    if times is None or other is None:
        return True
    return max(times[0], other[0]) <= min(times[1], other[1])


def _home(log_path: Path) -> Path:
    """Return the place of a training without the names that only say what kind of log lies there."""
    directory = log_path
    names: list[str] = []  # that distinguish trainings of the directory
    if log_path.suffix and not is_directory(log_path):
        directory = log_path.parent
        names = [] if _USUAL_LOG_NAME.fullmatch(log_path.stem) else [log_path.stem]
    if _VERSION.fullmatch(directory.name):
        names = [directory.name, *names]
        directory = directory.parent
    while _LOG_FOLDER.fullmatch(directory.name):
        directory = directory.parent
    return directory.joinpath(*names)


def _output(log_path: Path, has_events: bool, metadata: RunMetadata) -> str:
    """Return Hugging Face's directory for what a training saves; empty if it is not known."""
    above_runs = log_path.parent.parent if has_events and log_path.parent.name == "runs" else None
    setting = metadata.config.get(_OUTPUT_SETTING)
    if setting is None or not isinstance(setting.value, str) or not setting.value:
        return str(above_runs or "")
    output = Path(os.path.normpath(setting.value))
    if not output.is_absolute():
        nearest = (above_runs,) if above_runs is not None else ()
        around = (
            directory
            for directory in (*nearest, log_path, *log_path.parents)
            if _ends_with(directory, output)
        )
        output = next(around, _start(log_path, metadata) / output)
    return os.path.normpath(output)


def _ends_with(directory: Path, end: Path) -> bool:
    """Return whether a relative path, which names something, is the end of the path of a directory."""
    return bool(end.parts) and directory.parts[-len(end.parts) :] == end.parts


def _start(log_path: Path, metadata: RunMetadata) -> Path:
    """Return the directory in which a training was started, as far as a watch saw it or its log shows it.

    W&B writes two levels below.
    """
    if metadata.working_directory:
        return Path(metadata.working_directory)
    wandb = (directory for directory in (log_path, *log_path.parents) if _WANDB.fullmatch(directory.name))
    return next((directory.parent.parent for directory in wandb), log_path.parent)


def _writer_directory(log_path: Path) -> Path:
    """Return the directory of the writer of tensorboardX, whose files do not name their process.

    Its `add_scalars` writes `TAG/CURVE/` below that, of which only some are sure: `TAG/TAG/`, if a program
    logs one number under its own name, and curves that are called like a part of the data, as in
    `Loss/Training/` and `Loss/Validation/`. A tag may have slashes.
    """
    names = log_path.parts
    repeated = (n for n in range(1, _MAX_TAG_PARTS + 1) if names[-n:] == names[-2 * n : -n])
    depth = next(repeated, None)
    if depth is not None:
        return log_path.parents[2 * depth - 1]
    above = log_path.parents[: _MAX_TAG_PARTS + 1] if is_of_part(log_path) else ()
    nearest = next(filter(_event_files, above), log_path.parent)
    return log_path if nearest == log_path.parent else nearest


def _event_files(log_path: Path) -> list[str]:
    return [name for name in _file_names(log_path) if is_event_file(name)]


def _file_names(directory: Path) -> list[str]:
    try:
        return os.listdir(directory)
    except (OSError, ValueError):  # ValueError: a name that no path can have
        return []
