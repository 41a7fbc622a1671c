"""Says where the record of each run of an archive is, and what depends on many runs.

Of each run a few numbers stay in memory, some dozens of bytes, and some hundreds while they are sorted. The
records stay on disk.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import msgspec
import numpy as np
import polars as pl
from numpy.typing import NDArray

from sentinel.archives.record import Glance, Record, glance, unpacked_record
from sentinel.archives.results import Row
from sentinel.runs.continuations import Member, kind_of, successors
from sentinel.runs.metadata import RunMetadata
from sentinel.runs.training_groups import trainings

if TYPE_CHECKING:
    from sentinel.archives.merged_results import MergedResults
    from sentinel.archives.results import Results

_MAX_RUN_OBJECTS = 256  # runs that are Python objects at once, before they become columns

_RUN_COLUMNS: Mapping[str, type[pl.DataType] | pl.DataType] = {
    "place": pl.String,  # the parts of its path and its format, joined such that texts sort as they do
    "id": pl.Int64,  # a hash, as "joints", "processes", "program" and "kind" are
    "part": pl.UInt32,
    "row": pl.UInt32,
    "judged": pl.Boolean,
    "unread": pl.Boolean,
    "cut": pl.Boolean,
    "format": pl.String,
    "joints": pl.List(pl.Int64),
    "processes": pl.List(pl.Int64),  # those among the joints that join logs of one format, too
    "program": pl.Int64,
    "healthy": pl.Boolean,
    "kind": pl.Int64,
    "name": pl.String,
    "first_step": pl.Int64,
    "last_step": pl.Int64,
    "first_time": pl.Float64,
    "last_time": pl.Float64,
}


class Contents(msgspec.Struct, frozen=True):
    """The runs of an archive, each called by its number in the order of paths.

    ``rows`` says of each run in which row of which of the ``parts`` its record is, and whether it was
    ``judged``, is ``unread`` or ``cut``, can have siblings (of its ``program``), and is ``healthy``. Runs
    with different ``group`` are not of one training. ``goes_on_in`` is what `successors` gives.
    """

    results: "Results | MergedResults"
    parts: Sequence[str]
    rows: pl.DataFrame
    goes_on_in: Mapping[str, str]

    @classmethod
    def from_results(cls, archive_results: "Results | MergedResults") -> Self:
        """Return the runs in some results. Raises SentinelError if these are not complete."""
        archive_parts = archive_results.parts()
        run_rows = (
            _run_row(part, row, content)
            for part, key in enumerate(archive_parts)
            for row, content in enumerate(archive_results.packed(key))
        )
        rows = pl.concat(
            [pl.DataFrame(chunk, dict(_RUN_COLUMNS), orient="row") for chunk in _in_chunks(run_rows)]
        )
        rows = rows.sort("place", "id", maintain_order=True)
        # A run to which a link leads may be in two parts. The last one counts.
        rows = rows.filter(pl.col("id").ne_missing(pl.col("id").shift(-1)))
        goes_on_in = successors(_continuation_members(rows))
        rows = rows.with_columns(group=_training_groups(rows))
        columns = ("part", "row", "judged", "unread", "cut", "program", "healthy", "group")
        return cls(archive_results, archive_parts, rows.select(columns).rechunk(), goes_on_in)

    def row(self, run_number: int) -> Row:
        """Return where the record of a run is."""
        return Row(self.parts[self.rows["part"][run_number]], self.rows["row"][run_number])

    def record(self, run_number: int) -> Record:
        return self.results.record(self.row(run_number))

    def glance(self, run_number: int) -> Glance:
        """Return what is compared among all runs, of one."""
        return self.results.glance(self.row(run_number))

    def numbers(self, *, failed: bool = False) -> list[int]:
        """Return the numbers of the runs that were judged, or of those that could not be."""
        return (self.rows["judged"] != failed).arg_true().to_list()

    def groups(self) -> Iterator[list[int]]:
        """Yield the numbers of runs that may be of one training, in the order of the first of each group."""
        run_numbers = self.rows["judged"].arg_true().to_numpy()
        group = self.rows["group"].to_numpy()[run_numbers]
        _, first_rows, group, sizes = np.unique(
            group, return_index=True, return_inverse=True, return_counts=True
        )
        members = run_numbers[np.argsort(first_rows[group], kind="stable")]
        end = 0
        for group_size in sizes[np.argsort(first_rows)].tolist():
            yield members[end : end + group_size].tolist()
            end += group_size

    def trainings(self) -> NDArray[np.int64]:
        """Return, by the number of each run, that of the run which stands for its training."""
        training = np.arange(self.rows.height)
        for run_numbers in self.groups():
            if len(run_numbers) > 1:
                traces = {str(number): self.glance(number).training_evidence for number in run_numbers}
                for number, first_number in trainings(traces).items():
                    training[int(number)] = int(first_number)
        return training


def _in_chunks(run_rows: Iterable[tuple[Any, ...]]) -> Iterator[list[tuple[Any, ...]]]:
    """Yield the rows in lists, at least one."""
    rows_left = iter(run_rows)
    yield [*islice(rows_left, _MAX_RUN_OBJECTS)]
    while chunk := [*islice(rows_left, _MAX_RUN_OBJECTS)]:
        yield chunk


def _run_row(part: int, row: int, content: bytes) -> tuple[Any, ...]:
    run = glance(content)
    sort_key = "\0".join((*Path(run.path).parts, "", run.format))
    id_ = hash((run.id, run.failure))
    if run.overview is None:
        return (sort_key, id_, part, row, False, True, False, "", [], [], *[None] * 8)
    metadata = run.overview.metadata
    understanding = run.overview.understanding
    framework = understanding.framework
    sibling = run.sibling
    return (
        sort_key,
        id_,
        part,
        row,
        True,
        not metadata.points and unpacked_record(content).unread,
        bool(metadata.points) and run.overview.stopped is not None,
        run.format,
        [hash(joint) for joint in run.training_evidence.join_keys],
        [hash(process) for process in run.training_evidence.processes],
        sibling and hash((framework, frozenset(understanding.tags), sibling.settings)),  # of its fingerprint
        sibling and sibling.healthy,
        hash(kind_of(run.overview)),
        run.name,
        metadata.first_step,
        metadata.last_step,
        metadata.first_time,
        metadata.last_time,
    )


def _continuation_members(run_rows: pl.DataFrame) -> Iterator[Member]:
    """Yield the runs of kinds of which one may continue another one: it begins after the first step."""
    may_continue = (pl.col("first_step") > 1).any().over("kind") & (pl.len() > 1).over("kind")
    candidates = (
        run_rows.lazy()
        .filter("judged")
        .filter(may_continue)
        .select("name", "kind", *_TIMES_AND_STEPS)
        .collect()
    )
    for run_name, run_kind, *times in candidates.iter_rows():
        yield Member(
            run_name, run_kind, RunMetadata(**dict(zip(_TIMES_AND_STEPS, times, strict=True))), asked=True
        )


_TIMES_AND_STEPS = "first_step", "last_step", "first_time", "last_time"


def _training_groups(run_rows: pl.DataFrame) -> NDArray[np.int32]:
    """Return the number of the group of each run. Runs of different groups are not of one training.

    Runs of one group share a process, or a joint that logs of several formats have.
    """
    from scipy.sparse import coo_array  # slow to import
    from scipy.sparse.csgraph import connected_components

    runs_with_number = run_rows.lazy().with_row_index("run")
    format_joints = (
        runs_with_number.select("run", "format", joint="joints")
        .explode("joint")
        .filter(pl.col("format").n_unique().over("joint") > 1)
        .select("run", "joint")
    )
    process_joints = runs_with_number.select("run", joint="processes").explode("joint")
    shared = pl.concat([format_joints, process_joints]).drop_nulls().collect()
    joint_names, key_of_row = np.unique(shared["joint"].to_numpy(), return_inverse=True)
    run_count = run_rows.height
    runs = shared["run"].to_numpy()
    node_count = run_count + len(joint_names)  # the joints follow the runs
    _, labels = connected_components(
        coo_array((np.ones(len(runs), bool), (runs, run_count + key_of_row)), (node_count, node_count))
    )
    return np.asarray(labels[:run_count], np.int32)
