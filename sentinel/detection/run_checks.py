"""Calls the run checks on one run."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, partial
from typing import Any

from sentinel.detectors.run_checks import (
    Completion,
    Ended,
    HangDiagnosis,
    RunCheck,
    RunFinding,
    RunView,
    SiblingComparison,
    Writer,
)
from sentinel.incidents.inhibition import OF_THE_RUN
from sentinel.incidents.verdict_merge import Key, Segment, Verdict
from sentinel.runs.end_inference import outlook_of
from sentinel.runs.end_markers import done_file
from sentinel.runs.inactivity import Inactivity
from sentinel.runs.ingested import NOTHING, Ingested
from sentinel.runs.log import RunLog
from sentinel.runs.metadata import RunMetadata
from sentinel.series.plan import KnownOfRun
from sentinel.sources.registry import format_named

Stretches = Iterator[Segment]
"""Findings, each as a stretch of its own."""

_ATTEMPT = 1  # findings about the run as a whole belong to no attempt


@dataclass(frozen=True)
class RunChecks:
    """``parameters`` are the user's thresholds by check. ``failed`` is called when a check raises."""

    checks: Sequence[RunCheck]
    parameters: Mapping[str, Mapping[str, Any]]
    failed: Callable[[str, str, BaseException], None]

    def segments(
        self,
        log: RunLog,
        news: Ingested = NOTHING,
        *,
        silence: Inactivity | None = None,
        failure: str | None = None,
        concluded: bool = False,
    ) -> Stretches:
        """Return the present findings of the checks, but for those that ask for other runs; see `beside`.

        ``news`` is what a poll brought. ``silence`` is None if it is not known for how long the log was
        silent. ``failure`` says which stage failed on the run. A run is ``concluded`` if nothing more is
        expected of it.
        """
        facts = log.metadata
        ended = _ended(log, silence)
        view = RunView(
            points=facts.points,
            last_step=facts.last_step,
            last_time=facts.last_time,
            pauses=[*facts.pauses, *(silence.pauses if silence else ())],
            silent_seconds=silence.seconds if silence else None,
            ended=ended,
            printed=news.printed,
            stopped=news.stopped,
            inventories=news.inventories,
            absences=news.absences,
            unreadable=log.unreadable,
            failure=failure,
            finalized=ended if concluded else None,
            first_time=facts.first_time,
            planned_steps=log.planned_steps,
            last_lines=log.console.last_lines if log.console else "",
            together=silence.together if silence else None,
            process=cache(silence.process) if silence else Writer,
            hang_diagnosis=silence.standstill if silence else HangDiagnosis,
            shortages=cache(silence.shortages) if silence else str,
            dead_rank=silence.dead_rank if silence else None,
            process_gone=log.metadata.process_gone,
            ranks=silence.ranks if silence else 0,
            completion=cache(partial(_completion, log, silence)),
            done_file=str(done_file(log.run) or ""),
            log_is_removed=silence.log_is_gone if silence else bool,
            saved=format_named(log.run.format).written_at_checkpoints,
        )
        yield from self._asked(self.checks, log.run.id, view, log.known, final=concluded)

    def beside(
        self, name: str, run: str, facts: RunMetadata, known: KnownOfRun, among: SiblingComparison
    ) -> Stretches:
        """Return what the check of that name, which asks for other runs, finds in a run ``among`` its
        siblings.

        Its log need not be there: all that counts are the ``facts`` and what the log had told.
        """
        view = RunView(
            points=facts.points,
            last_step=facts.last_step,
            last_time=facts.last_time,
            pauses=(),
            silent_seconds=None,
            ended=None,
            printed=(),
            stopped=(),
            siblings=among,
        )
        return self._asked([check for check in self.checks if check.name == name], run, view, known)

    def _asked(
        self, checks: Iterable[RunCheck], run: str, view: RunView, known: KnownOfRun, *, final: bool = False
    ) -> Stretches:
        for check in checks:
            try:
                findings = [*check.check(view, **self.parameters.get(check.name, {}))]
            except Exception as error:  # noqa: BLE001  a broken check must not stop the others
                self.failed(check.name, run, error)
                continue
            yield from ([_verdict(run, view, known, check, finding, final=final)] for finding in findings)


def _completion(log: RunLog, silence: Inactivity | None) -> Completion:
    likewise = silence.likewise() if silence else ""
    return Completion(over=likewise) if likewise else outlook_of(log)


def _ended(log: RunLog, silence: Inactivity | None) -> Ended | None:
    if (ending := log.ending) is not None:
        return Ended(ending.outcome.value, ending.evidence, ending.exited)
    if silence is not None and silence.goes_on_in is not None:
        return Ended("preempted", f"{silence.goes_on_in} goes on from there")
    return None


def _verdict(
    run: str, view: RunView, known: KnownOfRun, check: RunCheck, finding: RunFinding, *, final: bool
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
        known=known,
        catalogue=finding.catalogue,
        final=final,
    )
