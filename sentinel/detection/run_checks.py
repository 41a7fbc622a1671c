"""Calls the run checks on one run."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cache, partial
from typing import Any

import msgspec

from sentinel.catalogue import signatures
from sentinel.detectors.api import Severity
from sentinel.detectors.run_checks import Completion, Ended, RunCheck, RunFinding, RunView, SiblingComparison
from sentinel.incidents.inhibition import OF_THE_RUN
from sentinel.incidents.verdict_merge import Key, Segment, Verdict
from sentinel.runs.end_inference import completion_of
from sentinel.runs.end_markers import done_file
from sentinel.runs.inactivity import Inactivity
from sentinel.runs.ingested import NOTHING, Ingested
from sentinel.runs.log import RunLog
from sentinel.runs.metadata import RunMetadata
from sentinel.series.plan import KnownOfRun
from sentinel.sources.registry import format_named

Segments = Iterator[Segment]
"""Findings, each as a segment of its own."""

_ATTEMPT = 1  # of all findings about the run as a whole, which belong to no attempt


class RunChecks(msgspec.Struct, frozen=True):
    """The checks of a whole run, and the user's thresholds by check. ``failed`` is called when one raises."""

    checks: Sequence[RunCheck]
    parameters: Mapping[str, Mapping[str, Any]]
    failed: Callable[[str, str, BaseException], None]

    def segments(
        self,
        log: RunLog,
        news: Ingested = NOTHING,
        *,
        inactivity: Inactivity | None = None,
        failure: str | None = None,
        final: bool = False,
    ) -> Segments:
        """Yield the present findings of the checks, but for those that compare with other runs; see `beside`.

        ``news`` is what a poll brought. ``inactivity`` is None if it is not known for how long the log was
        silent. ``failure`` says which stage failed on the run. The check is ``final`` if nothing more is
        expected of the run.
        """
        metadata = log.metadata
        quiet = inactivity or Inactivity(0.0)
        ended = _ended(log, quiet)
        view = RunView(
            points=metadata.points,
            first_step=metadata.first_step,
            last_step=metadata.last_step,
            last_time=metadata.last_time,
            pauses=[*metadata.pauses, *quiet.pauses],
            silent_seconds=inactivity.seconds if inactivity else None,
            ended=ended,
            printed=news.printed,
            stopped=news.stopped,
            inventories=news.inventories,
            absences=news.absences,
            unreadable=log.unreadable,
            failure=failure,
            finalized=ended if final else None,
            waits=quiet.pauses,
            step_elsewhere=metadata.step_elsewhere,
            first_time=metadata.first_time,
            planned_steps=log.planned_steps,
            last_lines=log.console.last_lines if log.console else "",
            last_entries=cache(partial(_entries, log)),
            together=quiet.together,
            process=cache(quiet.process),
            hang_diagnosis=quiet.standstill,
            shortages=cache(quiet.shortages),
            dead_rank=quiet.dead_rank,
            process_gone=metadata.process_gone,
            ranks=quiet.ranks,
            completion=cache(partial(_completion, log, quiet.likewise)),
            done_file=str(done_file(log.run) or ""),
            log_is_removed=quiet.log_is_gone,
            saved=format_named(log.run.format).written_at_checkpoints,
        )
        yield from self._findings(self.checks, log.run.id, view, log.known, final=final)

    def beside(
        self, name: str, run: str, metadata: RunMetadata, run_facts: KnownOfRun, siblings: SiblingComparison
    ) -> Segments:
        """Yield what the check of that name, which compares with other runs, finds in a run.

        Its log need not exist any more: only ``metadata`` and ``run_facts``, which come from it, count.
        """
        view = RunView(
            points=metadata.points,
            first_step=metadata.first_step,
            last_step=metadata.last_step,
            last_time=metadata.last_time,
            pauses=(),
            silent_seconds=None,
            ended=None,
            printed=(),
            stopped=(),
            siblings=siblings,
        )
        checks = [check for check in self.checks if check.name == name]
        return self._findings(checks, run, view, run_facts)

    def _findings(
        self,
        checks: Iterable[RunCheck],
        run: str,
        view: RunView,
        run_facts: KnownOfRun,
        *,
        final: bool = False,
    ) -> Segments:
        for check in checks:
            try:
                findings = [*check.check(view, **self.parameters.get(check.name, {}))]
            except Exception as error:  # noqa: BLE001  a broken check must not stop the others
                self.failed(check.name, run, error)
                continue
            yield from ([_verdict(run, view, run_facts, check, finding, final=final)] for finding in findings)


def _entries(log: RunLog) -> tuple[str, ...]:
    """Return the catalogue entries of the errors in what a run printed last, and in how it ended."""
    words = log.console.last_lines.splitlines() if log.console else []
    words += [log.ending.evidence] if log.ending else []
    matching = (
        signature.entry
        for line in words
        for signature in signatures()
        if signature.severity > Severity.INFO and signature.raised is None and signature.is_in(line)
    )
    return tuple(dict.fromkeys(matching))


def _completion(log: RunLog, likewise: Callable[[], str]) -> Completion:
    """Return whether a run is complete: as runs like it were, or else by its log."""
    evidence = likewise()
    return Completion(over=evidence) if evidence else completion_of(log)


def _ended(log: RunLog, inactivity: Inactivity) -> Ended | None:
    """Return how a run ended: as its log says, or because another run continues it."""
    ending = log.ending
    if ending is not None:
        return Ended(ending.outcome.value, ending.evidence, ending.exited)
    if inactivity.goes_on_in is not None:
        return Ended("preempted", f"{inactivity.goes_on_in} goes on from there")
    return None


def _verdict(
    run: str, view: RunView, run_facts: KnownOfRun, check: RunCheck, finding: RunFinding, *, final: bool
) -> Verdict:
    step = view.last_step if finding.step is None else finding.step
    return Verdict(
        key=Key(run, OF_THE_RUN, _ATTEMPT, finding.tag, check.name),
        signal="",
        index=finding.index,
        step=step or 0,
        time=view.last_time if finding.time is None else finding.time,
        position=finding.index,
        severity=check.severity(finding),
        variant=finding.variant,
        onset=lambda: None if finding.onset_step is None else (finding.onset_step, finding.onset_time),
        evidence=finding.evidence,
        known=run_facts,
        catalogue=finding.catalogue,
        final=final,
    )
