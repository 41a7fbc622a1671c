"""Figures of cards on directories that their whole fit had not: lines, weights, tails and thresholds."""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass

import polars as pl

from studies.cards.forms import CLAIMS, forms
from studies.cards.labels import FOLDS, Label
from studies.cards.verdicts import NONE, Model, claims_of, excused, fit_all

Pages = Mapping[str, Collection[str]]
"""By directory, the detectors that page there."""

CURVE_RULES = frozenset(
    [
        "flat-loss-at-init",
        "loss-plateau",
        "loss-divergence",
        "loss-spike",
        "generalization-gap",
        "eval-metric-collapse",
        "pretrained-regression",
        "reward-collapse",
        "reward-stagnation",
        "class-collapse",
        "zero-eval-metric",
        "eval-metric-instability",
        "train-eval-mismatch",
        "quality-loss-divergence",
        "reward-scale-instability",
        "metric-band",
        "odd-metric",
        "worse-than-siblings",
    ]
)
"""Rules that cards may replace."""

LEVEL_RULES = frozenset(
    [
        "kl-blowup",
        "clip-fraction-saturation",
        "entropy-collapse",
        "entropy-explosion",
        "clipped-completion-ratio",
        "completion-length-drift",
        "reward-zero-std",
        "exploding-grad-norm",
        "vanishing-grad-norm",
        "preference-margin-stall",
        "likelihood-displacement",
        "off-policy-drift",
    ]
)
"""Rules about levels of inner signals."""


@dataclass(frozen=True)
class LeftOut:
    """What models that had not seen a directory say of it: how rare each claim is, and the two thresholds."""

    rare: Mapping[str, Mapping[str, float]]
    page: Mapping[str, float]
    note: Mapping[str, float]

    def claims(self, home: str, noted: bool = False) -> set[str]:
        """Return the claims that page on a directory, or are noted at least."""
        return claims_of(self.rare.get(home, {}), (self.note if noted else self.page).get(home, 0.0))

    def rarest(self, home: str) -> float:
        """Return how rare the rarest claim is."""
        return min(self.rare.get(home, {}).values(), default=NONE)


def left_out(
    table: pl.DataFrame,
    labels: Mapping[str, Label],
    budget: float,
    note_budget: float,
    progress: Callable[[int, Model], None],
    asked: pl.DataFrame | None = None,
) -> LeftOut:
    """Fit all once for each fold that is left out, and look at it; in another table if one is ``asked``."""
    judged = [home for home, label in labels.items() if label.healthy is not None]
    rare: dict[str, Mapping[str, float]] = {}
    page: dict[str, float] = {}
    note: dict[str, float] = {}
    for fold in range(FOLDS):
        model = fit_all(
            table, labels, [home for home in judged if labels[home].fold != fold], budget, note_budget
        )
        out = [home for home in judged if labels[home].fold == fold]
        rare |= model.rarities(table if asked is None else asked, out)
        page |= dict.fromkeys(out, model.page)
        note |= dict.fromkeys(out, model.note)
        progress(fold, model)
    return LeftOut(rare, page, note)


def line(
    title: str, homes: Sequence[str], labels: Mapping[str, Label], named: Callable[[str], set[str]]
) -> str:
    """Return one line of figures. ``named`` gives the detectors for which a directory is paged."""
    problems = [labels[home] for home in homes if labels[home].healthy is False]
    healthy = [labels[home] for home in homes if labels[home].healthy]
    hits = {p.home: sum(bool(named(p.home) & group) for group in p.expect) / len(p.expect) for p in problems}
    by_repository: dict[str, list[float]] = {}
    for problem in problems:
        by_repository.setdefault(problem.repository, []).append(hits[problem.home])
    means = [sum(values) / len(values) for values in by_repository.values()]
    paged = [bool(named(label.home) - label.also_ok) for label in healthy]
    return (
        f"{title:38s} {sum(hits.values()) / max(len(hits), 1):.3f} ({sum(means) / max(len(means), 1):.3f} by"
        f" repository) of {len(problems)}; healthy paged"
        f" {sum(paged) / max(len(paged), 1):.3f} of {len(healthy)}"
    )


def detectors_of(claims: set[str]) -> set[str]:
    """Return the detectors that tell the claims."""
    return {CLAIMS[claim]["detector"] for claim in claims}


def report(found: LeftOut, labels: Mapping[str, Label], pages: Pages, consent: float) -> list[str]:
    """Return the lines of figures, by folder."""
    lines = []
    for folder in dict.fromkeys(label.folder for label in labels.values()):
        homes = [h for h, label in labels.items() if label.folder == folder and label.healthy is not None]
        lines.append(f"== {folder}")

        def rules(home: str, without: frozenset[str] = frozenset()) -> set[str]:
            return {*pages.get(home, ())} - without

        def cards(home: str) -> set[str]:
            # What a label excuses altogether is no false page.
            claims = found.claims(home)
            return detectors_of(
                {c for c in claims if not (labels[home].healthy and excused(labels[home], c))}
            )

        def consenting(home: str) -> set[str]:
            asks = CURVE_RULES | LEVEL_RULES
            # Where nothing can be an outcome, nothing can refuse.
            refused = home in found.rare and found.rarest(home) > consent
            return rules(home, asks if refused else frozenset())

        settings: dict[str, Callable[[str], set[str]]] = {
            "the rules": rules,
            "the rules but those of curves": lambda home: rules(home, CURVE_RULES),
            "the rules, by consent": consenting,
            "the cards": cards,
            "the cards for the curve rules": lambda home: cards(home) | rules(home, CURVE_RULES),
            "the cards and the rules": lambda home: cards(home) | rules(home),
            "the cards and the rules by consent": lambda home: cards(home) | consenting(home),
        }
        lines += [line(title, homes, labels, named) for title, named in settings.items()]
        noted = [h for h in homes if labels[h].healthy and found.claims(h, noted=True)]
        lines.append(f"healthy with a card's note or page: {len(noted)}")
        for claim, form in forms().items():
            true = [h for h in homes if labels[h].truth(form.detectors)]
            false = [h for h in homes if labels[h].truth(form.detectors) is False]
            hit = [h for h in true if claim in found.claims(h)]
            wrong = [h for h in false if claim in found.claims(h)]
            readable = [h for h in true if claim in found.rare.get(h, {})]
            lines.append(
                f"   {claim:30s} {len(hit):3d} of {len(true):3d} ({len(readable)} with such a series);"
                f" healthy paged {len(wrong)} of {len(false)}"
            )
    return lines
