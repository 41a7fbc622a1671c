"""What the cards say while runs go on: at every look, of the outcome alone, by the rows seen until then."""

import time
from collections.abc import Collection, Iterator, Mapping
from pathlib import Path

import numpy as np
import polars as pl
from msgspec.structs import replace

from sentinel.detectors.reading.cards import Bar, Card, all_cards
from sentinel.detectors.reading.company import COMPANY
from sentinel.detectors.reading.curves import Curves, curve_of, together
from sentinel.detectors.reading.looks import looks
from sentinel.detectors.reading.measurements import MEASUREMENTS
from sentinel.detectors.reading.roles import OUTCOMES, Role
from studies.cards.labels import FOLDS, Label
from studies.cards.series import Series, series_below
from studies.cards.table import home_of

BY = 0.5, 0.9  # shares of a run by which a problem is named
MAX_FALSE = 0.0  # share of the healthy that a bar may page in the folds that choose it


def table_of_looks(folder: Path, labels: Mapping[str, Label], cache: Path) -> pl.DataFrame:
    """Return a row for each outcome at each of its looks, measured once and then kept below the cache."""
    file = cache / f"{folder.name}-looks.parquet"
    if not file.exists():
        began = time.monotonic()
        cache.mkdir(parents=True, exist_ok=True)
        measured(_at_looks(folder, labels)).write_parquet(file)
        print(f"{folder}: read and measured in {time.monotonic() - began:.0f} s", flush=True)
    return pl.read_parquet(file)


def _at_looks(folder: Path, labels: Mapping[str, Label]) -> Iterator[tuple[str, Series, int]]:
    """Yield each outcome with its directory and how many of its rows were seen."""
    for one in series_below(folder):
        home = home_of(one.path, labels)
        if home is not None and one.part.role in OUTCOMES:
            counts = looks(1) + 1
            yield from ((home, one, count) for count in counts[counts < len(one.rows)].tolist())


def measured(seen: Iterator[tuple[str, Series, int]]) -> pl.DataFrame:
    """Return the table of outcomes of which so many rows were seen."""
    rows = [*seen]
    number_of = {id(one): number for number, one in enumerate({id(one): one for _, one, _ in rows}.values())}
    curves = [curve_of(one.rows[:n], higher_is_better=one.part.higher_is_better) for _, one, n in rows]
    groups: dict[tuple[bool, int], list[int]] = {}
    for number, curve in enumerate(curves):
        groups.setdefault((curve.is_cost, curve.units.shape[1]), []).append(number)
    columns = {name: np.full(len(rows), np.nan) for name in MEASUREMENTS}
    with np.errstate(all="ignore"):
        for numbers in groups.values():
            many: Curves = together([curves[number] for number in numbers])
            for name, measurement in MEASUREMENTS.items():
                columns[name][numbers] = measurement.measure(many)
    return pl.DataFrame(
        {
            "home": [home for home, _, _ in rows],
            "series": [number_of[id(one)] for _, one, _ in rows],
            "role": [one.part.role.value for _, one, _ in rows],
            "is_fresh": [one.is_fresh for _, one, _ in rows],
            "count": [float(count) for _, _, count in rows],
            "share": [count / len(one.rows) for _, one, count in rows],
            **columns,
        }
    )


def first_pages(card: Card, bar: Bar, table: pl.DataFrame) -> dict[str, float]:
    """Return by which share of the run a card pages first, by directory."""
    fresh = pl.col("is_fresh") | (card.begins == "best")
    own = table.filter(pl.col("role").is_in(card.roles) & fresh).sort("series", "count")
    values = {name: own[name].to_numpy() for name in card.measurements - COMPANY.keys()}
    values |= {name: np.full(len(own), np.nan) for name in card.measurements & COMPANY.keys()}
    reaches = card.points(values).sum(axis=0) >= bar.page_from
    for name, least in bar.needs.items():
        reaches &= values[name] >= least
    for name, least in bar.excuses.items():
        reaches &= ~(values[name] >= least)
    judged = own.with_columns(reaches=pl.Series(reaches, dtype=pl.Boolean))
    is_due = (pl.col("count") >= bar.least_points) & (pl.col("share") >= bar.progress)
    # Here nothing tells the epochs of a training loss.
    is_due &= (pl.col("role") != Role.TRAINING_LOSS) | (bar.least_epochs == 0)
    pages = judged.filter(pl.col("reaches") & is_due)
    for share in bar.earlier_shares:
        pages = _where_it_reached_before(pages, judged, share)
    found = pages.group_by("home").agg(pl.col("share").min())
    return dict(found.iter_rows())


def _where_it_reached_before(pages: pl.DataFrame, judged: pl.DataFrame, share: float) -> pl.DataFrame:
    """Return the looks at which the bar was reached at the last look within that share of the rows, too."""
    before = judged.select("series", "reaches", before="count").sort("before")
    looked = pages.drop("reaches").with_columns(until=share * pl.col("count")).sort("until")
    joined = looked.join_asof(before, left_on="until", right_on="before", by="series", check_sortedness=False)
    return joined.filter("reaches").drop("until", "before")


def page(table: pl.DataFrame, labels: Mapping[str, Label]) -> str:
    """Return a page of what each card finds while runs go on, and with bars chosen on other repositories."""
    parts = [
        "# What the cards say while a run goes on\n",
        "At looks, of the outcome alone, against a bar for a run that goes on; the share of the log stands",
        "for that of the plan. Metrics excuse nothing, and a bar that counts epochs is read on held-out",
        "data alone. Left out: the points of the bar page no healthy run in four folds of",
        "repositories, and what is counted lies in the fifth.\n",
        "| card | bar | problems named by half | by nine tenths | healthy paged | left out: by half | by nine"
        " tenths | healthy paged |\n| --- | --- | --- | --- | --- | --- | --- | --- |",
    ]
    for card in all_cards():
        for bar in card.running:
            own = _counted(card, first_pages(card, bar, table), labels, {*labels})
            left_out = np.sum([_left_out(card, bar, table, labels, fold) for fold in range(FOLDS)], axis=0)
            numbers = " | ".join(f"{number}" for number in (*own, *left_out.tolist()))
            plan = f", from {bar.progress:.0%} of the plan" if bar.progress else ""
            stands = f", for {bar.stands_for:.0%} of the rows" if bar.stands_for else ""
            parts.append(f"| {card.claim} | {bar.page_from:g} of {card.most}{plan}{stands} | {numbers} |")
    return "\n".join(parts) + "\n"


def _left_out(card: Card, bar: Bar, table: pl.DataFrame, labels: Mapping[str, Label], fold: int) -> list[int]:
    """Return the counts of one fold, with the least bar that pages hardly a healthy run of the others."""
    others = {home for home, label in labels.items() if label.fold != fold}
    healthy = sum(labels[home].truth(frozenset([card.detector])) is False for home in others)
    for page_from in range(int(card.over.page_from) + 1, card.most + 1):
        found = first_pages(card, replace(bar, page_from=page_from), table)
        if _counted(card, found, labels, others)[-1] <= MAX_FALSE * healthy:
            return _counted(card, found, labels, labels.keys() - others)
    return [0, 0, 0]


def _counted(
    card: Card, found: Mapping[str, float], labels: Mapping[str, Label], homes: Collection[str]
) -> list[int]:
    """Return how many problems are named by each share of the run, and how many healthy runs are paged."""
    truth = {home: labels[home].truth(frozenset([card.detector])) for home in found if home in homes}
    named = [sum(truth[home] is True and found[home] <= share for home in truth) for share in BY]
    return [*named, sum(true is False for true in truth.values())]
