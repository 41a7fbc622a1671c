"""The words of a tag, whatever separates them and however they are spelled."""

from collections.abc import Iterable, Sequence

from sentinel.common.lazy_pattern import lazy_pattern
from sentinel.series.foreign_words import in_english
from sentinel.series.glued_words import apart

_TAG_WORD = lazy_pattern(
    r"[hH]eld[ _-]?[oO]ut|CIDEr|nDCG|[KMG]i?B(?![a-z])|[mM]AP(?![A-Za-z])|[mM]?IoU"
    r"|[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+|[^\W\d_A-Za-z]+|%"
)

# Words that say which part of the data a number is of.
EVAL = frozenset(
    {"val", "va", "vali", "valid", "validate", "validating", "validation", "eval", "evaluating", "evaluation"}
    | {"test", "testing", "dev"}
    | {"heldout", "held-out", "held_out", "held out", "holdout"}
)
TRAIN = frozenset({"train", "training", "tr", "trn"})

PERCENT = frozenset({"%", "percent", "percentage", "pct"})

# Words that say where, how often or over what a number was measured, and do not change its meaning.
FILLERS = frozenset(
    {"metric", "metrics", "stat", "stats", "scalar", "scalars", "log", "chart", "charts"}
    | {"optim", "optimizer", "model", "data", "global", "rollout", "mean", "avg", "average"}
    | {"current", "running", "local", "batch", "minibatch", "step", "epoch", "it", "iter", "iteration"}
    | {"sim", "simulation", "env", "environment", "ray", "tune", "signal", "macro", "micro", "weighted"}
)

_SPELLINGS = {
    "losses": "loss",
    "gradient": "grad",
    "gradients": "grad",
    "norms": "norm",
    "gnorm": "grad norm",
    "lr": "learning rate",
    "lrate": "learning rate",
    "learnrate": "learning rate",
    "learningrate": "learning rate",
    "acc": "accuracy",
    "accur": "accuracy",
    "ppl": "perplexity",
    "rew": "reward",
    "rewards": "reward",
    "returns": "return",
    "ep": "episode",
    "episodes": "episode",
    "episodic": "episode",
    "len": "length",
    "frac": "fraction",
    "share": "fraction",
    "proportion": "fraction",
    "padding": "pad",
    "actor": "policy",
    "pg": "policy",
    "critic": "value",
    "vf": "value",
    "clipfrac": "clip fraction",
    "cliprange": "clip range",
    "eps": "epsilon",
    "approxkl": "approx kl",
    "approximate": "approx",
    "kullback": "kl",
    "leibler": "kl",
    "reference": "ref",
    "response": "completion",
    "completions": "completion",
}


def words_of(tag: str) -> list[str]:
    """Return the words of a tag in their order, as they are spelled, in lower case."""
    return [word.lower() for word in _TAG_WORD.findall(apart(in_english(tag)))]


def spelled(words: Iterable[str]) -> Sequence[str]:
    """Return the words in the spelling of the tables."""
    return [part for word in words for part in _SPELLINGS.get(word, word).split()]
