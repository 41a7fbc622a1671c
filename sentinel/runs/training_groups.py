"""Which logs are of one training: the one relation that telling, listings and reports share.

A training often writes several logs: Hugging Face's Trainer its state beside those of TensorBoard and W&B,
Lightning one for each logger, `add_scalars` of torch one directory for each curve. Equal steps and numbers
prove nothing: two trainings of one script have them as well. Logs are of one training only if something joins
them:

- the same process on the same host, as the names of event files or the end of the process tell it, or the
  same writer of tensorboardX;
- the same id of W&B;
- the file into which the process printed that failed;
- the same place: one directory, or directories that differ only in names such as `tb` and `csv_logs`. A file
  with an unusual name for a log is a place of its own;
- Hugging Face's ``output_dir`` as that place: the directory of `trainer_state.json`, that above `runs/`, or
  that in the settings.

Two logs of one format are joined by their process alone, and only if they were written at the same time.
One directory may hold many trainings that followed one another, and one process may train the folds of a
cross-validation.
"""

import math
import os
import re
from collections.abc import Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from sentinel.runs.metadata import RunMetadata
from sentinel.sources.location import Location, Url
from sentinel.sources.readers.files import real_path
from sentinel.sources.registry import format_named
from sentinel.sources.tensorboard.held_out import is_of_part
from sentinel.sources.tensorboard.names import is_event_file, writer_in

_KINDS = re.compile(
    "logs?|tb|tensorboard|csv|jsonl?|events|tfevents|summar(y|ies)|metrics|console"
    "|(tb|tensorboard|csv|lightning)_logs"
)
"""Directories that hold the logs of one kind, and say nothing about the training."""
_SAVED = re.compile("out(put)?s?|checkpoints?|ckpts?")
"""Directories for what a training saves, which say nothing about it. It may log there or beside them."""
_USUAL = re.compile(
    "(train(ing)?_|trainer_)?(logs?|metrics?|history|stats)|train|training|log_history|progress|run|output|out"
    "|std(out|err)|console|results|scalars|loss(es)?|nohup"
    "|(system|gpu|hardware|resource)s?(_(metrics|stats|usage|monitor))?"
)
"""Names of files that say nothing about the training either."""
_DEEPEST_TAG = 3  # parts between slashes
_VERSION = re.compile(r"version_\d+")
_OUTPUT = "output_dir"
"""The setting of Hugging Face's that names the place of a training."""
_PLACE = "place "
_WANDB = re.compile(r"(?:offline-)?run-\d{8}_\d{6}-(\w+)")
_RECORD = re.compile(r"run-(\w+)\.wandb")
_FILES = "files"
"""Where W&B keeps what was printed, beside its record. A copy of `latest-run` has no id in its name."""


@dataclass(frozen=True)
class TrainingEvidence:
    """What one log tells of its training.

    ``joints`` are what it may share with other logs, ``processes`` are those among them that name a process.
    ``output`` is Hugging Face's directory, and empty if unknown. ``times`` are those of its first and its
    last point on its own clock, None if unknown.
    """

    format: str
    join_keys: frozenset[str]
    processes: frozenset[str] = frozenset()
    output: str = ""
    times: tuple[float, float] | None = None

    def until(self, facts: RunMetadata) -> "TrainingEvidence":
        """Return the same with the times of a log that has grown."""
        return replace(self, times=_times(facts))


def is_same_training(trace: TrainingEvidence, other: TrainingEvidence, surely: bool = False) -> bool:
    """Return whether two logs are of one training. Symmetric.

    With ``surely``, whether a process or W&B's id joins them: a place may have seen several trainings.
    """
    if trace.format == other.format:
        return bool(trace.processes & other.processes) and _side_by_side(trace, other)
    differ = trace.output and other.output and trace.output != other.output
    joints = (
        joint for joint in trace.join_keys & other.join_keys if not (surely and joint.startswith(_PLACE))
    )
    return any(joints) and not differ


def trainings(traces: Mapping[str, TrainingEvidence]) -> dict[str, str]:
    """By the id of each log, the id of the log that stands for its training: the first one.

    A log joins a training if it is of one training with a log there, and could be with all of its format. If
    it joins several that have no format in common, these are one. The logs join in the order in which they
    began, so a training that ended is not looked at again.
    """
    formats = {trace.format for trace in traces.values()}
    members: list[_Training] = []
    near: dict[tuple[str, str], list[int]] = {}  # by joint and format: the trainings that such a log may join
    training_of: dict[str, int] = {}
    for log in sorted(traces, key=lambda log: (traces[log].times or (-math.inf,))[0]):
        trace = traces[log]
        for joint in trace.join_keys:
            known = near.get((joint, trace.format), ())
            near[joint, trace.format] = [n for n in known if members[n].may_take(trace, joint)]
        open_ = {members[n].numbers[0] for joint in trace.join_keys for n in near[joint, trace.format]}
        takers = (number for number in sorted(open_) if members[number].takes(trace))
        training_of[log] = joined = next(takers, len(members))
        if joined == len(members):
            members.append(_Training([joined]))
        own = members[joined]
        for number in sorted(open_):
            other = members[number]
            if number > joined and own.formats.isdisjoint(other.formats) and other.takes(trace):
                for same in own.join(other):
                    members[same] = own
        for joint in own.add(trace):
            others = formats if joint in trace.processes else formats - own.formats
            for format_ in others:
                near.setdefault((joint, format_), []).append(joined)
    first: dict[_Training, str] = {}
    return {log: first.setdefault(members[training_of[log]], log) for log in traces}


class _Training:
    """What is known of the logs of one training, so that one look says whether a further log joins them."""

    def __init__(self, numbers: list[int]) -> None:
        self.numbers = numbers  # those by which it is known, its own first
        self.join_keys: set[tuple[str, str | None]] = set()  # each with an output; None: with any
        self.processes: dict[str, set[frozenset[str]]] = {}  # by format
        self.times: dict[str, tuple[float, float]] = {}  # by format: when all logs of it were written

    def add(self, trace: TrainingEvidence) -> set[str]:
        """Add a log. Gives the joints that are new."""
        new = {joint for joint in trace.join_keys if (joint, None) not in self.join_keys}
        self.join_keys |= {(joint, output) for joint in trace.join_keys for output in (trace.output, None)}
        self.processes.setdefault(trace.format, set()).add(trace.processes)
        if trace.times is not None:
            self.times[trace.format] = self._common(trace.times, trace.format)
        return new

    def join(self, other: "_Training") -> list[int]:
        """Take all logs of another one, which has no format in common. Gives the numbers of that one."""
        self.numbers += other.numbers
        self.join_keys |= other.join_keys
        self.processes |= other.processes
        self.times |= other.times
        return other.numbers

    @property
    def formats(self) -> AbstractSet[str]:
        """Those of its logs."""
        return self.processes.keys()

    def may_take(self, trace: TrainingEvidence, joint: str) -> bool:
        """Return whether this log, or one of its format that began later, can join because of a joint."""
        if trace.format in self.formats and joint not in trace.processes:
            return False
        ended = self.times.get(trace.format, (0.0, math.inf))[1]
        alone = frozenset() in self.processes.get(trace.format, ())
        return not alone and (trace.times is None or ended >= trace.times[0])

    def takes(self, trace: TrainingEvidence) -> bool:
        """Return whether the log is of this training."""
        if trace.format in self.processes:
            begin, end = self._common(trace.times or (-math.inf, math.inf), trace.format)
            return begin <= end and all(trace.processes & own for own in self.processes[trace.format])
        outputs = (trace.output, "") if trace.output else (None,)
        return any((joint, output) in self.join_keys for joint in trace.join_keys for output in outputs)

    def _common(self, times: tuple[float, float], format_: str) -> tuple[float, float]:
        begin, end = self.times.get(format_, times)
        return max(begin, times[0]), min(end, times[1])


def trainings_of(logs: Mapping[str, RunMetadata]) -> dict[str, str]:
    """By the id of each run, that of the first log of its training. ``logs`` has the best informed first."""
    return trainings({run: trace_of(run, facts) for run, facts in logs.items()})


def trace_of(run: str, facts: RunMetadata) -> TrainingEvidence:
    """Return what the log of a run tells, by its id. Never raises."""
    format_, _, place = run.partition(":")
    return trace(Url.parse(place) or Path(place), format_, facts)


def trace(place: Location, format_: str, facts: RunMetadata) -> TrainingEvidence:
    """Return what a log at a place tells, with the names of the files there. Never raises."""
    if not isinstance(place, Path):
        return TrainingEvidence(format_, frozenset({f"id {place.parts[-1]}"}))
    writers = _processes(place)
    output = _output(place, bool(writers), facts)
    exit_ = {facts.exit.evidence.partition(";")[0]} if facts.exit is not None else set()  # names the process
    processes = frozenset(f"process {process}" for process in writers | exit_)
    records = [place.name, *(_names(place.parents[1]) if place.parent.name == _FILES else ())]
    named = (*map(_WANDB.fullmatch, place.parts), *map(_RECORD.fullmatch, records))
    ids = (f"id {match[1]}" for match in named if match)
    above = _home(place.parent) if _SAVED.fullmatch(place.name) else ""
    places = (f"{_PLACE}{directory}" for directory in (_home(place), above, output) if directory)
    # What a process printed may be a log, too, wherever it lies.
    printed = facts.output or (real_path(place) if format_named(format_).is_console else "")
    prints = (f"printed in {file}" for file in (printed,) if file)
    return TrainingEvidence(
        format_, frozenset([*processes, *ids, *places, *prints]), processes, output, _times(facts)
    )


def _times(facts: RunMetadata) -> tuple[float, float] | None:
    began = facts.first_time
    ended = facts.last_time
    return None if began is None or ended is None else (began, ended)


def _side_by_side(trace: TrainingEvidence, other: TrainingEvidence) -> bool:
    if trace.times is None or other.times is None:
        return True
    return max(trace.times[0], other.times[0]) <= min(trace.times[1], other.times[1])


def _home(place: Path) -> Path:
    """Return the place of a training without the names that only say what kind of log lies there."""
    directory = place
    own = list[str]()
    if _is_file(place):
        directory = place.parent
        own = [] if _USUAL.fullmatch(place.stem) else [place.stem]
    if _VERSION.fullmatch(directory.name):
        own = [directory.name, *own]
        directory = directory.parent
    while _KINDS.fullmatch(directory.name):
        directory = directory.parent
    return directory.joinpath(*own)


def _is_file(place: Path) -> bool:
    return bool(place.suffix) and not place.is_dir()


def _output(place: Path, has_events: bool, facts: RunMetadata) -> str:
    told: Any = facts.config[_OUTPUT].value if _OUTPUT in facts.config else None
    if isinstance(told, str) and told:
        return os.path.normpath(_working_directory(place) / told)
    return str(place.parent.parent) if has_events and place.parent.name == "runs" else ""


def _working_directory(place: Path) -> Path:
    """Return where the training was started, as far as its log tells: W&B writes two levels below."""
    below = (directory for directory in (place, *place.parents) if _WANDB.fullmatch(directory.name))
    return next((directory.parent.parent for directory in below), place.parent)


def _processes(place: Path) -> set[str]:
    names = _event_files(place)
    return {writer["process"] if (writer := writer_in(name)) else f"of {_writer(place)}" for name in names}


def _writer(place: Path) -> Path:
    """Return the directory of the writer of tensorboardX, whose files do not name their process.

    Its `add_scalars` writes `TAG/CURVE/` below that, of which only some are sure: `TAG/TAG/`, if a program
    logs one number under its own name, and curves that are called like a part of the data, as in
    `Loss/Training/` and `Loss/Validation/`. A tag may have slashes.
    """
    parts = place.parts
    repeated = (n for n in range(1, _DEEPEST_TAG + 1) if parts[-n:] == parts[-2 * n : -n])
    if (deep := next(repeated, None)) is not None:
        return place.parents[2 * deep - 1]
    above = place.parents[: _DEEPEST_TAG + 1] if is_of_part(place) else ()
    nearest = next(filter(_event_files, above), place.parent)
    return place if nearest == place.parent else nearest


def _event_files(place: Path) -> list[str]:
    return [name for name in _names(place) if is_event_file(name)]


def _names(directory: Path) -> list[str]:
    try:
        return os.listdir(directory)
    except (OSError, ValueError):  # ValueError: a name that no path can have
        return []
