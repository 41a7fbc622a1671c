"""Finds the pairs of a name and a number in a printed text."""

import re
from collections.abc import Iterator, Mapping
from functools import lru_cache

from sentinel.common.lazy_pattern import lazy_pattern
from sentinel.sources.console.printed import NUMBER, number
from sentinel.sources.readers.listed import one_by_one
from sentinel.sources.readers.thresholds import plain_thresholds
from sentinel.sources.readers.words import is_rounded_away, without_remarks

_METRIC_NAME = lazy_pattern(
    r"loss|acc|reward|return|perplexity|ppl|bpb|(?<![a-z])lr|learning.?rate|grad|(?<![a-z])kl|entropy"
    r"|(?<![a-z])(?:rew|score|cost|nll|mse|mae|psnr|ssim|f1|bleu|m?iou|map|dice|auc)(?![a-z])",
    re.IGNORECASE,
)

_PROOF = lazy_pattern(
    r"(?<!stop[ _-])(?<!packet[ _-])(?<!path[ _-])(?<!power[ _-])(?<!heat[ _-])(?<!profit/)loss(?![a-z])"
    r"|^(?:(?:mean|avg|average|total|ep|episode|episodic|eval|test|train)[ _-]){0,3}rewards?(?![a-z])"
    r"|perplexity",
    re.IGNORECASE,
)
"""Names that a training prints even in a line that tells no step, and other programs do not."""

_PRINTED_VALUE = (
    rf"(?:tensor\(|np\.float\d\d\()?(?P<list>[\[(]{{0,2}})(?P<value>{NUMBER})"
    r"(?P<unit> ?%| ?(?:ms|s|sec|secs|seconds|it/s|GiB|GB|MiB|MB)(?!\w))?+(?![\w/]|[.:]\w)"
)
_METRIC_WORD = r"(?!(?:nan|inf(?:inity)?)(?!\w))[A-Za-z_][\w./@-]*+"
_COLON = lazy_pattern(
    rf"(?<![\w./@'\"-])(?P<name>{_METRIC_WORD}(?: \(?{_METRIC_WORD}\)?){{0,5}}+)(?<!\.py)"
    rf"\s{{0,9}}[:=]\s{{0,9}}{_PRINTED_VALUE}",
    re.IGNORECASE,
)
_SPACE = lazy_pattern(
    rf"(?:^|[|,;\t:\]]) *+(?P<name>{_METRIC_WORD}(?: {_METRIC_WORD}){{0,3}}+) ++{_PRINTED_VALUE}"
    r" *+(?:\([^()|\t]{0,40}\) *+)?(?=[|,;\t]|$)",
    re.IGNORECASE,
)
"""Pairs such as "name: 1.0" or "name=1.0"; if a line has none, pairs such as "name 1.0, other 2.0"."""

_DASHED = lazy_pattern(
    rf" - (?P<name>{_METRIC_WORD}) (?P<list>)(?P<value>{NUMBER})(?P<unit>)(?= - |$)", re.IGNORECASE
)
"""Pairs between dashes. flair prints its loss so, among other pairs with a colon."""

_SPACED = lazy_pattern(
    rf"[\s|:]*+(?P<name>{_METRIC_WORD}(?: {_METRIC_WORD}){{0,3}}+)(?: ?[:=])? ++{_PRINTED_VALUE}(?=[\s|]|$)",
    re.IGNORECASE,
)
"""A pair "name 1.0" among others that only blanks separate, if a line holds nothing else."""

_OF_GROUPS = lazy_pattern(r"(?<![a-z])lr|learning.?rate|mom", re.IGNORECASE)
"""What an optimizer has for each of its parameter groups. The value of the first group counts."""

_UNIT_DIVISORS = {"%": 100, "ms": 1000}  # of what metrics are in: shares and seconds


_APART = lazy_pattern(r"(?: /|\.(?<=\d\.)) (?=[A-Za-z])")
"""What stands between pairs: a slash (Dreamer), or the full stop of a sentence (minGPT)."""

_ETA = lazy_pattern(r"(?:eta(?<!\weta)|ETA(?<!\wETA)):?\s\d+(?: days?,? [\d:]+|(?::\d\d)+)")
"""The time that is left, which no pair begins with."""

_SPELLINGS = (
    ("'s ", " "),
    (" is ", ": "),
    *((arrow, "|") for arrow in ("->", "=>", "\N{EM DASH}", "\N{EN DASH}", "→")),
)
"""What stands between names and numbers in some lines, and what is read in its place."""


@lru_cache(maxsize=1 << 10)  # there are few names, and many of each
def is_metric(name: str) -> bool:
    """Return whether the name is that of a known metric."""
    return bool(_METRIC_NAME.search(name))


@lru_cache(maxsize=1 << 10)
def is_of_training(name: str) -> bool:
    """Return whether the name is surely that of a metric of a training, wherever it stands."""
    return bool(_PROOF.search(name))


def pairs(text: str, names: Mapping[str, str]) -> Iterator[tuple[str, float]]:
    """Yield the names and numbers in the text, in order; ``names`` replaces some of the names.

    A percentage becomes a share, and milliseconds become seconds. Of a list, only the first value of an
    optimizer's groups counts.
    """
    text = one_by_one(without_remarks(text))
    for spelling, plain in _SPELLINGS:
        text = text.replace(spelling, plain)
    if "@" in text and "95" in text:
        text = plain_thresholds(text)
    text = _APART.sub("|", _ETA.sub("|", text))
    matches = [*_DASHED.finditer(text), *_COLON.finditer(text)]
    spaced = _SPACE.finditer(text)
    matches += [pair for pair in spaced if not matches or _METRIC_NAME.search(pair["name"])]
    matches.sort(key=re.Match[str].start)
    if not matches or _METRIC_NAME.search(text, matches[-1].end()):
        matches = _only_pairs(text) or matches
    for pair in matches:
        value = number(pair["value"])
        is_list = pair["list"] and text.startswith(",", pair.end()) and not _OF_GROUPS.search(pair["name"])
        is_lost = is_rounded_away(pair["name"], pair["value"])
        if value is not None and pair["name"] != "eta" and not is_list and not is_lost:
            unit = (pair["unit"] or "").strip().lower()
            yield names.get(pair["name"], pair["name"]), value / _UNIT_DIVISORS.get(unit, 1)


def _only_pairs(text: str) -> list[re.Match[str]]:
    """Return the pairs of a text that holds nothing else; none if it does."""
    pairs = []
    end = 0
    text = text.rstrip(" |")
    while (pair := _SPACED.match(text, end)) is not None:
        pairs.append(pair)
        end = pair.end()
    return pairs if end == len(text) else []
