"""What cards say of directories: how rare a score is among healthy ones, and what pages at which rarity."""

from collections import Counter, defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import polars as pl

from sentinel.detectors.stats import Floats
from studies.cards.fit import SHARED, FittedCard, fit
from studies.cards.forms import CLAIMS, forms
from studies.cards.labels import FOLDS, Label

BEGIN = 0.90  # share of the healthy beyond which a tail is taken for exponential
LEAST_RARITY = 0.003  # a rarer score tells no more
MAX_RARITY = 0.01  # at which a claim pages, however many healthy directories the budget allows
NO_ODDS = -1e6  # logarithm of the odds of what is not read
NONE = 1.0  # rarity of a claim that nothing speaks for

Rarities = Mapping[str, Mapping[str, float]]
"""By directory, then by claim: the share of healthy directories of which more speaks for the claim."""


@dataclass(frozen=True)
class Tail:
    """Scores of healthy directories, ascending, and what each weighs."""

    scores: Floats
    weights: Floats

    @classmethod
    def of(cls, scores: Mapping[str, float], labels: Mapping[str, Label]) -> "Tail":
        """Return the tail of healthy directories; a repository of many weighs as the root of their number."""
        repositories = [labels[home].repository for home in scores]
        count = Counter(repositories)
        weight = np.array(
            [labels[h].weight / count[r] ** 0.5 for h, r in zip(scores, repositories, strict=True)]
        )
        values = np.array([*scores.values()])
        order = np.argsort(values)
        return cls(values[order], weight[order] / weight.sum())

    def rarity(self, score: float) -> float:
        """Return the share of the healthy that score as high; beyond the last tenth by an exponential."""
        sums = np.cumsum(self.weights)
        above = 1 - float(np.append(0.0, sums)[np.searchsorted(self.scores, score, side="left")])
        mark = float(self.scores[min(int(np.searchsorted(sums, BEGIN)), len(sums) - 1)])
        over = self.scores > mark
        if score <= mark or not over.any():
            return above
        share = float(self.weights[over].sum())
        mean = float(((self.scores - mark)[over] * self.weights[over]).sum()) / share
        return min(share, share * float(np.exp(-(score - mark) / max(mean, 1e-6))))

    def score(self, rarity: float) -> float:
        """Return the least score that is as rare."""
        low = float(self.scores[0]) - 1
        high = float(self.scores[-1]) + 50
        for _ in range(60):
            middle = (low + high) / 2
            low, high = (middle, high) if self.rarity(middle) > rarity else (low, middle)
        return high


@dataclass(frozen=True)
class Model:
    """A card and its tail for each claim, and the rarities from which on it pages and notes."""

    cards: Mapping[str, tuple[FittedCard, Tail]]
    page: float
    note: float

    def rarities(self, table: pl.DataFrame, homes: Collection[str]) -> dict[str, dict[str, float]]:
        """Return how rare the scores of directories are."""
        found: dict[str, dict[str, float]] = defaultdict(dict)
        for claim, (card, tail) in self.cards.items():
            for home, score in best_scores(card, table, homes, telling=True).items():
                found[home][claim] = tail.rarity(score)
        return found


def best_scores(
    card: FittedCard, table: pl.DataFrame, homes: Collection[str], *, telling: bool = False
) -> dict[str, float]:
    """Return the highest log odds of any curve of each directory that has one.

    Of curves that do not measure what the claim needs, if they are ``telling``, it is the least of all.
    """
    rows = table.filter(card.form.reads() & pl.col("home").is_in([*homes]))
    if not len(rows):
        return {}
    odds = pl.Series(card.odds(rows), dtype=pl.Float64)
    counts = card.form.may_page() if telling else pl.lit(True)
    scored = rows.select("home", odds=pl.when(counts).then(odds).otherwise(NO_ODDS))
    return dict(scored.group_by("home").agg(pl.col("odds").max()).sort("home").iter_rows())


def fit_all(
    table: pl.DataFrame, labels: Mapping[str, Label], homes: Sequence[str], budget: float, note_budget: float
) -> Model:
    """Fit every card; tails and thresholds come from folds of the directories that a fit had not."""
    shares = _shares(table, labels, homes)
    cards: dict[str, tuple[FittedCard, Tail]] = {}
    rare: dict[str, dict[str, float]] = defaultdict(dict)
    for claim, form in forms().items():
        share = shares.get(claim, {})
        left: dict[str, float] = {}
        telling: dict[str, float] = {}
        for fold in range(FOLDS):
            out = [home for home in homes if labels[home].fold == fold]
            others = [home for home in homes if labels[home].fold != fold]
            card = fit(form, table, labels, others, share) if out else None
            if card is not None:
                left |= best_scores(card, table, out)
                telling |= best_scores(card, table, out, telling=True)
        card = fit(form, table, labels, homes, share)
        healthy = {home: s for home, s in left.items() if labels[home].truth(form.detectors) is False}
        if card is None or not healthy:
            continue
        tail = Tail.of(healthy, labels)
        cards[claim] = card, tail
        for home, score in telling.items():
            rare[home][claim] = tail.rarity(score)
    page = min(MAX_RARITY, threshold(rare, labels, homes, budget))
    return Model(cards, page, threshold(rare, labels, homes, note_budget))


def _shares(
    table: pl.DataFrame, labels: Mapping[str, Label], homes: Sequence[str]
) -> dict[str, dict[str, float]]:
    """Return for each claim the share that it has in what the label of each problem says.

    A first fit takes every claim that a label allows for true. Then the claims of which the curves show most
    have most of it.
    """
    evidence: dict[str, dict[str, float]] = defaultdict(dict)
    for claim, form in forms().items():
        card = fit(form, table, labels, homes)
        if card is None:
            continue
        found = best_scores(card, table, homes)
        healthy = {home: s for home, s in found.items() if labels[home].truth(form.detectors) is False}
        tail = Tail.of(healthy, labels)
        for home, score in found.items():
            if labels[home].truth(form.detectors):
                evidence[home][claim] = 1 / max(tail.rarity(score), LEAST_RARITY)
    shares: dict[str, dict[str, float]] = defaultdict(dict)
    for home, of_claim in evidence.items():
        for claim, value in of_claim.items():
            shares[claim][home] = SHARED + (1 - SHARED) * value / sum(of_claim.values())
    return shares


def threshold(rare: Rarities, labels: Mapping[str, Label], homes: Sequence[str], budget: float) -> float:
    """Return the rarity at which such a share of the healthy directories of strangers is paged."""
    healthy = [home for home in homes if labels[home].healthy and labels[home].weight == 1.0]
    least = sorted(
        min((r for claim, r in rare.get(home, {}).items() if not excused(labels[home], claim)), default=NONE)
        for home in healthy
    )
    return least[int(budget * len(least))] if least else 0.0


def excused(label: Label, claim: str) -> bool:
    """Return whether a label says that all for which a claim stands may be found there."""
    return forms()[claim].detectors <= label.also_ok


def claims_of(rare: Mapping[str, float], page: float) -> set[str]:
    """Return the claims that are rarer than a threshold."""
    found = {claim for claim, rarity in rare.items() if rarity < page}
    return {claim for claim in found if found.isdisjoint(CLAIMS[claim].get("yields_to", ()))}
