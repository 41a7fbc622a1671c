"""Runs that were read to their end and judged, as reports get them."""

from collections.abc import Sequence
from functools import cached_property
from typing import TYPE_CHECKING

import msgspec

from sentinel.pipeline import Pipeline
from sentinel.replays.coverage import Coverage
from sentinel.replays.judged import JudgedRun
from sentinel.runs.training_groups import trainings_of
from sentinel.sources.base import ReadIssue

if TYPE_CHECKING:
    from sentinel.comparison.measures import Comparison


class Replay(msgspec.Struct, frozen=True, dict=True):
    """Runs that were read to their end, and complaints about what could not be read.

    The runs are all runs under the paths, sorted by path, or a part of them; see `replaying.replay_in_parts`.
    ``selection`` says which incidents these are, if not all: "kl-blowup since step 400".
    """

    runs: Sequence[JudgedRun]
    read_issues: Sequence[ReadIssue]
    pipeline: Pipeline
    coverage: Coverage
    selection: str = ""
    comparisons: Sequence["Comparison"] = ()
    unread: Sequence[ReadIssue] = ()  # files that look like logs and hold no numbers that are understood

    @cached_property
    def trainings(self) -> dict[str, str]:
        """The id of the first log of the training of each run, by the run's id."""
        return trainings_of({run.run_pipeline.id: run.run_pipeline.log.metadata for run in self.runs})
