"""One run in the pipeline: its log and its incidents, and what one step of the pipeline made of them."""

import math
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import msgspec
from msgspec.structs import astuple

from sentinel.common.fault_isolation import Guard
from sentinel.common.owners import owner_of
from sentinel.comparison.means import Means
from sentinel.comparison.siblings import WORSE, compared_tags
from sentinel.detectors.run_checks import SiblingRange
from sentinel.detectors.settings import Setting
from sentinel.incidents.incident import Change, Incident
from sentinel.incidents.lifecycle import IncidentTracker
from sentinel.incidents.verdict_merge import Segment
from sentinel.notifications.routing import RoutingContext, RunChanges, SinkDecision, route_changes
from sentinel.runs.end_inference import infer_end
from sentinel.runs.excerpts import excerpts
from sentinel.runs.ingested import Ingested
from sentinel.runs.log import RunLog
from sentinel.runs.metadata import framework
from sentinel.runs.state_codec import packed, unpacked
from sentinel.series.excerpt import Excerpt
from sentinel.sources.base import Chunk, PollResult
from sentinel.sources.identity import RunIdentity


class RunPipeline(msgspec.Struct):
    """The state of one run; `dump` and `restore` carry it over a restart.

    ``layout`` identifies the detectors and the names of tags. A state with another layout cannot be restored.
    ``host`` is what the configuration calls the machine on which the log lies; empty if it does not say.
    ``machine`` is the name of the one that first read the log: a pod has another name after each restart.
    """

    log: RunLog
    incidents: IncidentTracker
    layout: Callable[[], str]
    host: str
    machine: str
    means: Means | None = None  # if a watch compares the run with others
    bands: Mapping[str, SiblingRange] = msgspec.field(default_factory=dict)  # of its siblings, by tag

    @property
    def id(self) -> str:
        """The id of the run; see `sentinel.sources.base.Run`."""
        return self.log.run.id

    def described(self) -> RunIdentity:
        """Return the run as notifications name it."""
        log = self.log
        path = self.log.run.path
        plans = [stream.plans.now for stream in log.streams.values()]
        sizes = {plan[Setting.WORLD_SIZE] for plan in plans if Setting.WORLD_SIZE in plan}
        return RunIdentity(
            run=log.name,
            path=str(path),
            framework=framework(log.streams.values()),
            location=str(path.absolute() if isinstance(path, Path) else path),
            host=(self.host or self.machine) if isinstance(path, Path) else None,
            planned_steps=log.planned_steps,
            world_size=sizes.pop() if len(sizes) == 1 else None,
            owner=owner_of(path) if isinstance(path, Path) else None,
            label=log.metadata.label,
        )

    def ingest(self, limit: int, read_at: float, guard: Guard) -> Ingested:
        """Poll the log, at most about ``limit`` points. Return what is new; nothing if the reader fails."""
        log = self.log
        batch = guard(log.run, f"the {log.run.format} reader", partial(log.poll, limit))
        if batch is None:
            batch = PollResult(log.cursor)
        ingested = guard(log.run, "understanding the log", partial(log.ingest, batch, read_at))
        if self.means is not None:
            guard(log.run, "keeping its course", partial(self._add_to_means, self.means, batch.chunks))
        return ingested or Ingested(chunks=batch.chunks, read_issues=batch.read_issues)

    def _add_to_means(self, means: Means, chunks: Sequence[Chunk]) -> None:
        """Add to the means of the tags that are compared, as soon as the tags have their meanings."""
        new_tags = means.new(chunks)
        if new_tags and all(stream.has_names for stream in self.log.streams.values()):
            signals = self.log.understanding().signals
            means.keep(
                {compared_tags(tags)[0] for signal, tags in signals.items() if signal in WORSE}, new_tags
            )
        means.add(chunks)

    def end(self, guard: Guard) -> Ingested:
        """Infer how the run ended. Return what is left to judge; nothing of a run that was over before."""
        guard(self.log.run, "its last words", partial(infer_end, self.log, math.inf))
        if self.incidents.before_finalize is not None:
            return Ingested()
        return guard(self.log.run, "the end of the log", self.log.flush) or Ingested()

    def undo_finalize(self, guard: Guard) -> Sequence[Change]:
        """Undo the changes of the end, because the run continues; return what becomes of its incidents."""
        return guard(self.log.run, "going on", self.incidents.undo_finalize) or ()

    def apply(self, verdicts: Sequence[Segment], guard: Guard, *, final: bool = False) -> Sequence[Change]:
        """Apply verdicts to the incidents. Return the changes. The run is over if they are ``final``."""
        finalize = partial(self.incidents.finalize, end=self.log.end)
        change = finalize if final else self.incidents.advance
        return guard(self.log.run, "advancing incidents", partial(change, verdicts)) or ()

    def route(
        self,
        changes: Sequence[Change],
        context: RoutingContext,
        now: float,
        may_return: Sequence[Incident] = (),
    ) -> list[SinkDecision]:
        """Decide which sinks are notified of changes and of what is open, and why the others are not.

        ``may_return`` are incidents that are over; see `sentinel.notifications.routing.RunChanges`.
        """
        run_changes = RunChanges(
            self.described(), changes, self.incidents.open(), may_return=may_return, excerpts=self.excerpts
        )
        return route_changes(run_changes, context, now)

    def excerpts(self, incident: Incident) -> list[Excerpt]:
        """Return the signals around an incident, the judged one first; none if its attempt is over."""
        return excerpts(self.log, incident.stream, incident.attempt, incident.tag, incident.detector)

    def dump(self) -> bytes:
        """Return everything that `restore` needs. Raises TypeError for a value that cannot be stored."""
        state = {
            "layout": self.layout(),
            "machine": self.machine,
            **self.log.dump(),
            "incidents": self.incidents.dump(),
        }
        if self.means is not None:
            state["means"] = self.means.dump()
            state["bands"] = {tag: astuple(band) for tag, band in self.bands.items()}
        return packed(state, lasting=self.incidents.before_finalize is not None)

    def restore(self, state: bytes) -> bool:
        """Undo `dump`. False, with nothing but the name of the machine, if the layout differs.

        Raises msgspec.DecodeError for bytes that `dump` did not make, and other errors for wrong content. The
        run must not be used after an error.
        """
        stored = unpacked(state)
        self.machine = stored.get("machine", self.machine)
        if stored.get("layout") != self.layout():
            return False
        self.log.restore(stored)
        self.incidents.restore(stored["incidents"])
        if self.means is not None:  # means of half a run would be false
            self.means = Means.load(stored["means"]) if "means" in stored else None
            self.bands = bands_of(stored)
        return True


def bands_of(state: Mapping[str, Any]) -> Mapping[str, SiblingRange]:
    """Return the bands of the siblings of a run, by tag, in what `RunPipeline.dump` packed."""
    return {tag: SiblingRange(*band) for tag, band in state.get("bands", {}).items()}


class Advance(msgspec.Struct, frozen=True):
    """What is new in one run. After a failure the run pipeline must not be used again."""

    run_pipeline: RunPipeline
    ingested: Ingested
    changes: Sequence[Change]
    failure: str | None
    row_counts: Counter[tuple[str, str]]  # rows that the detectors judged or skipped; see `RowDetection`

    @property
    def more(self) -> bool:
        """Whether the log goes on and can be read on."""
        return self.ingested.more and self.failure is None
