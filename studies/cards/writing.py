"""Writes fitted cards as TOML, and a page of what each line adds."""

import json
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from sentinel.detectors.reading.card_files import FEW, INTERIMS, LEAST_EPOCHS, SHARES, card_in
from sentinel.detectors.reading.cards import Card
from studies.cards.fit import MOST_POINTS, FittedCard, FittedLine
from studies.cards.forms import CLAIMS, forms
from studies.cards.labels import Label
from studies.cards.verdicts import Model, Tail, best_scores

HERE = Path(__file__).parent
SAYS = tomllib.loads((HERE / "sentences.toml").read_text("utf-8"))

HEAD = "# Written by `python -m studies.cards fit`. A person read it before it landed.\n"


def toml(card: FittedCard, tail: Tail, model: Model) -> str:
    """Return the text of a card, with points from which on it pages and notes."""
    claim = card.form.claim
    most = sum(max(0, *line.points) for line in card.lines)
    page = min(most, max(MOST_POINTS, round((tail.score(model.page) - card.bias) / card.slope)))
    lines = [
        f"{HEAD}claim = {json.dumps(claim)}",
        f"meaning = {json.dumps(CLAIMS[claim]['meaning'])}",
        f"begins = {json.dumps(CLAIMS[claim]['begins'])}",
        f"roles = {json.dumps(list(card.form.roles))}",
        f"detector = {json.dumps(CLAIMS[claim]['detector'])}",
        f"catalogue = {json.dumps(CLAIMS[claim]['catalogue'])}",
        *([f"yields_to = {json.dumps(CLAIMS[claim]['yields_to'])}"] if "yields_to" in CLAIMS[claim] else []),
        f"least_points = {card.form.least_points}",
        *_bounds("needs", card.form.needs),
        *_bounds("excuses", card.form.excuses),
        f"page_from = {page}",
        *_bounds(FEW, CLAIMS[claim].get(FEW, {})),
        *_interims(CLAIMS[claim].get(INTERIMS, {})),
        *(line for bar in CLAIMS[claim].get("running", ()) for line in _running(bar)),
    ]
    for line in sorted(card.lines, key=lambda one: -abs(one.points[1])):
        name = line.candidate.measurement
        lines += [
            "\n[[lines]]",
            f"measurement = {json.dumps(name)}",
            f"says = {json.dumps(SAYS[name])}",
            f"marks = {json.dumps([*line.candidate.marks])}",
            f"points = {json.dumps([0, *line.points])}",
        ]
    return "\n".join(lines) + "\n"


def _interims(content: Mapping[str, Any]) -> list[str]:
    """Return when a card tells what it says at interims, which no fit moves either."""
    bounds = [line for key in ("needs", "excuses") for line in _bounds(key, content.get(key, {}))]
    numbers = [f"{key} = {value}" for key, value in content.items() if not isinstance(value, Mapping)]
    return [f"\n[{INTERIMS}]", *numbers, *bounds] if content else []


def _running(bar: Mapping[str, Any]) -> list[str]:
    """Return a bar of a run that goes on, which no fit moves."""
    bounds = [line for key in ("needs", "excuses") for line in _bounds(key, bar.get(key, {}))]
    return [
        "\n[[running]]",
        *(f"{key} = {bar[key]}" for key in (*SHARES, LEAST_EPOCHS) if key in bar),
        f"least_points = {bar['least_points']}",
        *bounds,
        f"page_from = {bar['page_from']}",
    ]


def _bounds(key: str, bounds: Mapping[str, float]) -> list[str]:
    inner = ", ".join(f"{name} = {least}" for name, least in bounds.items())
    return [f"{key} = {{ {inner} }}"] if bounds else []


def write(model: Model, folder: Path) -> list[Card]:
    """Write all cards, and return them as the product reads them."""
    cards: list[Card] = []
    for claim, (card, tail) in model.cards.items():
        text = toml(card, tail, model)
        cards.append(card_in(f"{claim}.toml", text))
        (folder / f"{claim}.toml").write_text(text, "utf-8")
    return cards


def page(model: Model, table: pl.DataFrame, labels: Mapping[str, Label]) -> str:
    """Return a page of the cards: what each line adds, and which points healthy runs reach."""
    parts = ["# What the cards are worth\n"]
    for claim, (card, tail) in model.cards.items():
        parts.append(f"## {claim}\n\n{CLAIMS[claim]['meaning']}; read on {', '.join(card.form.roles)}.\n")
        parts.append(
            "| line | marks | points | named at 3 % of healthy without it |\n| --- | --- | --- | --- |"
        )
        whole = _named(card, table, labels)
        for line in sorted(card.lines, key=lambda one: -abs(one.points[1])):
            less = _without(card, line)
            parts.append(
                f"| {line.candidate.measurement} | {', '.join(f'{m:g}' for m in line.candidate.marks)}"
                f" | 0, {line.points[0]}, {line.points[1]} | {_named(less, table, labels):.2f} |"
            )
        levels = [
            f"{share:.0%}: {(tail.score(share) - card.bias) / card.slope:.0f}" for share in (0.1, 0.03, 0.01)
        ]
        parts.append(f"\nWith all lines {whole:.2f}. Points that healthy runs reach, {', '.join(levels)}.\n")
    return "\n".join(parts)


def _without(card: FittedCard, line: FittedLine) -> FittedCard:
    return FittedCard(card.form, tuple(one for one in card.lines if one is not line), card.slope, card.bias)


def _named(card: FittedCard, table: pl.DataFrame, labels: Mapping[str, Label]) -> float:
    """Return the share of the faulty above all but 3 % of the healthy, on what the card was fitted to."""
    homes = [
        home for home, label in labels.items() if label.truth(forms()[card.form.claim].detectors) is not None
    ]
    scores = best_scores(card, table, homes)
    true = np.array([s for home, s in scores.items() if labels[home].truth(card.form.detectors)])
    false = np.sort([s for home, s in scores.items() if not labels[home].truth(card.form.detectors)])
    return float((true > false[int(0.97 * len(false))]).mean())
