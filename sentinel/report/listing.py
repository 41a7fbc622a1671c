"""The runs that were found, for a person: a line for each, then the number in each state."""

from collections import Counter
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from functools import lru_cache

from sentinel.common.distinct_names import distinct
from sentinel.common.text import clean_text, counted_runs
from sentinel.incidents.json_body import clock_text
from sentinel.replays.listing import ListedRun, Listing
from sentinel.runs.fit import fit
from sentinel.series.roles.outcome import Outcome
from sentinel.series.roles.role import Unit
from sentinel.sources.base import ReadIssue
from sentinel.sources.discovery import unread_count, unread_line
from sentinel.sources.registry import format_named

_MAX_TAGS_SHOWN = 3
_FURTHER_LOG = "also in "  # before a log that does not tell most of its training
_MIN_NAME = 12  # characters of a name that are left, however narrow the terminal is
_UNIT_WORDS = {Unit.SHARE: "a share", Unit.PERCENT: "in percent", Unit.NATS: "in nats"}


def lines(listing: Listing, details: bool, width: int | None = None) -> Iterator[tuple[int, str]]:
    """Yield the report, line by line with the indent of each, safe to print.

    On a terminal of that ``width`` each run has one line, and names that are too long are shortened so that
    no two read alike.

    The logs of one training stand below the one that tells most of it.
    """
    trainings: dict[str, list[ListedRun]] = {}
    for run in listing.runs:
        trainings.setdefault(run.training, []).append(run)
    listed_runs = [
        run
        for members in trainings.values()
        for run in sorted(members, key=lambda run: not run.stands_for_its_training)
    ]
    facts = [_facts(run, listing.detectors) for run in listed_runs]
    run_titles = [clean_text(run.overview.title) for run in listed_runs]
    if width is not None:
        rooms = (
            width - len(fact) - (0 if run.stands_for_its_training else len(_FURTHER_LOG) + 2)
            for run, fact in zip(listed_runs, facts, strict=True)
        )
        run_titles = distinct(run_titles, max(_MIN_NAME, min(rooms, default=0) - 2))
    for run, name, fact in zip(listed_runs, run_titles, facts, strict=True):
        if run.stands_for_its_training:
            yield 0, f"{name}  {fact}"
        else:
            yield 2, f"{_FURTHER_LOG}{name}  {fact}"
        if details:
            yield from ((4, line) for line in _details(run))
        if run.stopped:
            yield 4, f"judging stopped: {clean_text(run.stopped, 500)}"
    for issue in listing.read_issues:
        yield 0, f"unreadable: {clean_text(str(issue), 500)}"
    if line := unread_line(listing.unread):
        yield 0, clean_text(line, 500)
    states = Counter(run.status.state for run in listing.runs if run.stands_for_its_training)
    counted = ", ".join(f"{count} {state}" for state, count in states.most_common())
    yield 0, f"{counted_runs(len(trainings), len(listing.runs))}: {counted}"


_NAME_THEM = '`[[console]] line = "loss {loss} at {step}"`'


def unread_lines(unread: Sequence[ReadIssue]) -> Iterator[tuple[int, str]]:
    """Yield a line for each file that looks like a log and is not read, with what was missing."""
    yield from ((0, clean_text(str(issue), 500)) for issue in unread)
    yield 0, unread_count(len(unread))
    if unread:
        yield 0, f"{_NAME_THEM} in sentinel.toml has such lines read; `sentinel check-config` tries it"


def _facts(run: ListedRun, detectors: int) -> str:
    """Return what stands beside the name of a run."""
    overview = run.overview
    framework = f", {overview.understanding.framework}" if overview.understanding.framework else ""
    more = "" if run.whole else "+"
    able = fit(tuple(overview.understanding.signals), run.lacking, detectors)
    attempts = f", {overview.attempts}{more} attempts" if overview.attempts > 1 else ""
    return (
        f"{overview.format}{framework}, {run.status.state}, {overview.metadata.points}{more} points"
        f"{attempts}, judged by {able.able} of {able.fitting} that fit"
    )


def _details(run: ListedRun) -> Iterator[str]:
    yield f"state: {clean_text(run.status.evidence)}"
    if run.overview.metadata.last_time is not None:
        yield f"times: {_logged_times(run)}"
    signals = [_signal(signal, tuple(tags)) for signal, tags in run.overview.understanding.signals.items()]
    yield f"signals: {', '.join(signals) or 'none'}"
    outcome = run.overview.outcome
    yield f"outcome: {_outcome_text(outcome) if outcome is not None else 'none'}"
    blind: dict[str, list[str]] = {}
    for detector, missing in run.lacking.items():
        blind.setdefault(" and ".join(missing), []).append(detector)
    for run_titles, detectors in blind.items():
        yield f"no {run_titles}: not judged by {', '.join(detectors)}"


def _logged_times(run: ListedRun) -> str:
    """Return when the run began and wrote last, and in which zone times without one are read."""
    first_time = clock_text(run.overview.metadata.first_time)
    last_time = run.overview.metadata.last_time or 0.0
    times = f"{first_time} to {clock_text(last_time)}"
    form = format_named(run.overview.format)
    if not (form.is_console or form.is_appended_text):  # no other holds times as text
        return times
    zone = datetime.fromtimestamp(last_time, UTC).astimezone().strftime("%Z, %z")
    return f"{times}; a time that is printed without a zone is this machine's local time ({zone})"


def _outcome_text(outcome: Outcome) -> str:
    """Return the series by which the run is judged, as in "val_mcc, higher is better, held-out, a share"."""
    unit = _UNIT_WORDS.get(outcome.role.unit)
    outcome_parts = [
        clean_text(outcome.tag),
        f"{outcome.role.direction} is better",
        str(outcome.split),
        *([unit] if unit else []),
    ]
    return f"{', '.join(outcome_parts)}; {clean_text(outcome.why)}"


@lru_cache(maxsize=1 << 10)  # the runs of one project have the same signals
def _signal(signal: str, tags: tuple[str, ...]) -> str:
    further = f" and {len(tags) - _MAX_TAGS_SHOWN} more" if len(tags) > _MAX_TAGS_SHOWN else ""
    return f"{signal} ({' '.join(clean_text(tag) for tag in tags[:_MAX_TAGS_SHOWN])}{further})"
