"""What sentinel says of labelled logs."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from sentinel import catalogue
from sentinel.config.file import Config
from sentinel.detectors.api import Maturity, Severity
from sentinel.incidents.causes import Listed, PossibleCause
from sentinel.incidents.incident import Incident
from sentinel.replays.judged import JudgedRun
from sentinel.replays.replay import Replay
from sentinel.replays.replaying import replay_in_parts
from studies.strangers.labels import Label


@dataclass(frozen=True)
class Said:
    """An incident that no other one explains. It is ``loud`` if a sink hears of it by default.

    ``causes`` are the entries that it lists, in their usual order.
    """

    detector: str
    variant: str
    loud: bool
    summary: str
    causes: Sequence[Listed] = ()

    @property
    def name(self) -> str:
        """The detector and its variant, as the tables show them."""
        return f"{self.detector}: {self.variant}" if self.variant else self.detector


@dataclass(frozen=True)
class Outcome:
    """What was said of the logs in a labelled directory.

    ``length`` is the number of points of the tag that has most. ``silent`` says for each detector why it
    judged nothing.
    """

    label: Label
    read: bool
    length: int
    said: Sequence[Said]
    silent: Mapping[str, str]

    @property
    def wanted(self) -> int:
        """How many groups of detectors have to ring."""
        return len(self.label.expect)

    @property
    def found(self) -> int:
        """How many of them did so."""
        return self._found(self.said if self.label.info_is_enough else self.loud)

    @property
    def found_with_info(self) -> int:
        """The same if an incident that only a report shows is enough."""
        return self._found(self.said)

    @property
    def loud(self) -> Sequence[Said]:
        return [one for one in self.said if one.loud]

    @property
    def hits(self) -> frozenset[str]:
        """The variants that rang and are right."""
        expected = frozenset().union(*self.label.expect)
        heard = self.said if self.label.info_is_enough else self.loud
        return frozenset(one.name for one in heard if one.detector in expected)

    @property
    def wrong(self) -> Sequence[Said]:
        """What rang on a healthy run, or for no reason that the label knows."""
        return [one for one in self.loud if one.detector not in self.label.accepted]

    def _found(self, heard: Sequence[Said]) -> int:
        rang = {one.detector for one in heard}
        return sum(not rang.isdisjoint(group) for group in self.label.expect)


def judged(folder: Path, labels: Sequence[Label]) -> list[Outcome]:
    """Replay all logs of the folders that hold labels once. A log belongs to the deepest label above it."""
    said: dict[str, list[Outcome]] = {label.path: [] for label in labels}
    of = {label.path: label for label in labels}
    kinds = [folder / kind for kind in sorted({label.kind for label in labels})]
    for part in replay_in_parts(kinds, Config.model_construct(), lambda *_: None, curves=True):
        for run in part.runs:
            path = Path(str(run.run_pipeline.log.run.path)).relative_to(folder)
            home = next((str(at) for at in (path, *path.parents) if str(at) in of), None)
            if home is not None:
                said[home].append(_outcome(of[home], run, part))
    return [_together(of[path], outcomes) for path, outcomes in said.items()]


def _outcome(label: Label, run: JudgedRun, part: Replay) -> Outcome:
    silent = {name: f"lacks {', '.join(lacks)}" for name, lacks in run.lacking.items() if lacks}
    silent |= {name: ", ".join(reasons) for name, reasons in run.skipped(run.lacking).items()}
    return Outcome(
        label=label,
        read=True,
        length=max((curve.rows for curve in run.curves.of.values()), default=0) if run.curves else 0,
        said=[_said(incident) for incident in run.own],
        silent=silent,
    )


def _together(label: Label, outcomes: Sequence[Outcome]) -> Outcome:
    """The outcome of all logs of one label. A detector was silent if it judged none of them."""
    silent = [one.silent for one in outcomes]
    return Outcome(
        label=label,
        read=bool(outcomes),
        length=max((one.length for one in outcomes), default=0),
        said=[said for one in outcomes for said in one.said],
        silent={
            name: why for one in silent for name, why in one.items() if all(name in all_ for all_ in silent)
        },
    )


def _said(incident: Incident) -> Said:
    loud = incident.maturity is Maturity.STABLE and incident.severity >= Severity.WARNING
    causes = sorted(incident.causes, key=lambda cause: incident.cited.index(cause.id))
    return Said(incident.detector, incident.variant, loud, incident.summary, [*map(_listed, causes)])


def _listed(cause: PossibleCause) -> Listed:
    """The entry, with the rules of its page that are told among its reasons."""
    entry = catalogue.load()[cause.id]
    return Listed.of(
        cause.id,
        [rule for rule in (*entry.checks, *entry.confirms) if rule.because in cause.reason],
        [rule for rule in entry.excludes if f"against it: {rule.because}" in cause.reason],
    )
