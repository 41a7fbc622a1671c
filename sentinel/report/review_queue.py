"""The pages of an archive to look at first, as one HTML file with a question about each."""

from collections.abc import Collection, Iterable, Sequence
from itertools import islice, zip_longest

import msgspec
from msgspec.structs import replace

from sentinel.calibration.calibration import FALSE, USEFUL
from sentinel.calibration.page_statistics import Kind, Pages, Stricter
from sentinel.calibration.public_base_rate import by_stratum
from sentinel.calibration.thresholds import Move, changes_of
from sentinel.common.text import counted
from sentinel.incidents.incident import Incident
from sentinel.report.html import SCRIPTS, STYLES, asset, data_of, environment, policy
from sentinel.report.model import RunReport
from sentinel.series.thumbnails import OBJECTIVES

ANSWERS = {USEFUL: "Right", FALSE: "False alarm"}
_MAX_DRAWN_POINTS = 8_000  # some 130 kB
_MAX_CURVES_BESIDE = 3  # the one of the incident


def doubtful(
    pages: Pages, moves: Iterable[Move], answers: Collection[str], max_pages: int = 5
) -> list[tuple[str, Incident]]:
    """Return the pages to look at first: of healthy runs, by name, and without those that were answered.

    The kinds that would change come first, then those that page most, one page of each in turn. Of a
    kind, the page comes first that stands alone in its run: the one that nothing else speaks for.
    """
    paging = [kind for kind, _ in pages.by_kind()]
    changed = [kind for move in moves for kind in paging if move.change.covers(kind)]
    kinds = dict.fromkeys([*changed, *paging])
    in_order = sorted(pages.healthy.items(), key=lambda item: (len(item[1].paged), item[0]))
    by_kind = (
        [
            (name, run.paged[kind])
            for name, run in in_order
            if kind in run.paged and run.paged[kind].id not in answers
        ]
        for kind in kinds
    )
    in_turn = (page for turn in zip_longest(*by_kind) for page in turn if page is not None)
    return [*islice(in_turn, max_pages)]


class Doubt(msgspec.Struct, frozen=True):
    """A page that may be false: its run, reduced to the one incident, and the curves as JSON."""

    run: RunReport
    other_tags: Sequence[str]
    data: str

    @classmethod
    def from_incident(cls, run: RunReport, incident: Incident) -> "Doubt":
        """Return the doubt about an incident of a run."""
        (report,) = (report_ for report_ in run.incidents if report_.id == incident.id)
        goals = (tag for signal in OBJECTIVES for tag in run.tags.get(signal, ()))
        other_incidents = [
            tag for tag in dict.fromkeys((*goals, *run.curves)) if tag in run.curves and tag != report.tag
        ]
        tags = [report.tag, *other_incidents[:_MAX_CURVES_BESIDE]]
        curves = {tag: run.curves[tag] for tag in tags if tag in run.curves}
        alone = replace(run, incidents=[report], curves=curves)
        return cls(alone, other_incidents[:_MAX_CURVES_BESIDE], data_of(alone, _MAX_DRAWN_POINTS))


def html(doubts: Iterable[Doubt], pages: Pages, moves: Sequence[Move]) -> str:
    """Return the page: a question about each doubt, and how often each kind pages in which runs."""
    doubts = [*doubts]
    scripts, styles = [[*map(asset, names)] for names in ((*SCRIPTS, "answers.js"), STYLES)]
    changes = changes_of(moves)
    return (
        environment()
        .get_template("doubtful.html")
        .render(
            verdict=f"{counted(len(doubts), 'page')} to look at first",
            doubts=doubts,
            answers=ANSWERS,
            before=pages.rate(),
            after=pages.rate(changes),
            strata=[*by_stratum(pages, changes)],
            kinds=[
                (kind, rate, _from_now_on(kind, moves), pages.of_kind(kind)) for kind, rate in pages.by_kind()
            ],
            scripts=scripts,
            styles=styles,
            policy=policy(scripts, styles),
        )
    )


def _from_now_on(page_kind: Kind, moves: Iterable[Move]) -> str:
    """Return what becomes of a kind."""
    became = [move.change for move in moves if move.change.covers(page_kind)]
    if page_kind in became:
        return "only informs"
    return ", ".join(["pages", *(change.how for change in became if isinstance(change, Stricter))])
