"""Reads a tag that no profile knows. It must understand every word of the tag.

The words of a tag are looked up together, whatever their order and separators. A tag with one word too many
(``loss_cls``, ``D_loss``, ``best_loss``) stays unmapped, because a wrong meaning is worse than none.
"""

import re
from collections.abc import Mapping, Sequence
from functools import cache
from itertools import pairwise

from msgspec.structs import replace

from sentinel.common.lazy_pattern import lazy_pattern
from sentinel.detectors.signals import Signal
from sentinel.series.derived import SHARES
from sentinel.series.patterns import Meaning
from sentinel.series.probes import probe
from sentinel.series.tag_words import EVAL, FILLERS, PERCENT, TRAIN, spelled, words_of
from sentinel.sources.readers.splits import COMPARED

_ACCURACY_KINDS = ("", "binary ", "categorical ", "sparse categorical ", "token ", "overall ")
_ACCURACIES = [
    *(f"{kind}accuracy" for kind in _ACCURACY_KINDS),
    "top 1",
    "top 1 accuracy",
    "accuracy 1",
    "prec 1",
]

_LOSSES = ("loss", "cost", "nll", "total loss", "lm loss", "mlm loss")
_ERRORS = ("mse", "rmse", "mae", "mean squared error", "root mean squared error", "mean absolute error")
"""Errors of regressions; on training batches they may be terms of a loss."""

_MAX_CODEBOOKS = 32
"""Codebooks of a residual quantiser whose perplexities bear their numbers."""

_COUNTERS = frozenset({"acc iter"})
"""Names that look like metrics and count: the accumulated iterations of OpenPCDet."""

_GENERATORS = ("generator", "gen", "g", "gan", "total generator", "total g")
_DISCRIMINATORS = ("discriminator", "disc", "d", "total discriminator", "total d")

_TRAINING: Mapping[str, Signal] = {
    **dict.fromkeys(_LOSSES, Signal.LOSS),
    "l pix": Signal.LOSS,  # BasicSR
    "logloss": Signal.LOSS,
    "binary logloss": Signal.LOSS,
    "multi logloss": Signal.LOSS,
    "mlogloss": Signal.LOSS,
    "elbo": Signal.LOSS,
    "elbo loss": Signal.LOSS,
    "negative elbo": Signal.LOSS,
    **dict.fromkeys((f"{network} loss" for network in _GENERATORS), Signal.GENERATOR_LOSS),
    **dict.fromkeys((f"{network} loss" for network in _DISCRIMINATORS), Signal.DISCRIMINATOR_LOSS),
    "policy loss": Signal.POLICY_LOSS,
    "policy grad loss": Signal.POLICY_LOSS,
    "pi loss": Signal.POLICY_LOSS,
    "surrogate loss": Signal.POLICY_LOSS,
    "value loss": Signal.VALUE_LOSS,
    "value function loss": Signal.VALUE_LOSS,
    "td loss": Signal.VALUE_LOSS,
    "q loss": Signal.VALUE_LOSS,
    "v loss": Signal.VALUE_LOSS,
    "learning rate": Signal.LEARNING_RATE,
    "learn rate": Signal.LEARNING_RATE,
    "l rate": Signal.LEARNING_RATE,
    "learning rate 0": Signal.LEARNING_RATE,
    "learning rate group 0": Signal.LEARNING_RATE,
    "grad norm": Signal.GRAD_NORM,
    "grad norm l 2": Signal.GRAD_NORM,
    "total grad norm": Signal.GRAD_NORM,
    "policy grad norm": Signal.GRAD_NORM,
    "value grad norm": Signal.GRAD_NORM,
    "loss scale": Signal.LOSS_SCALE,
    "amp scale": Signal.LOSS_SCALE,
    "amp loss scale": Signal.LOSS_SCALE,
    "scaler scale": Signal.LOSS_SCALE,
    "grad scale": Signal.LOSS_SCALE,
    "grad scaler": Signal.LOSS_SCALE,
    "grad scaler scale": Signal.LOSS_SCALE,
    "skipped steps": Signal.SKIPPED_STEPS,
    "kl": Signal.KL_UNKNOWN_UNIT,
    "kl divergence": Signal.KL_UNKNOWN_UNIT,
    "kl div": Signal.KL_UNKNOWN_UNIT,
    "kl difference": Signal.KL_UNKNOWN_UNIT,
    "ref kl": Signal.KL_UNKNOWN_UNIT,
    "kl to ref": Signal.KL_UNKNOWN_UNIT,
    "approx kl": Signal.APPROX_KL,
    "entropy": Signal.POLICY_ENTROPY,
    "policy entropy": Signal.POLICY_ENTROPY,
    "dist entropy": Signal.POLICY_ENTROPY,  # MAPPO
    "token entropy": Signal.ENTROPY,
    "reward": Signal.REWARD,
    "return": Signal.REWARD,
    "episode reward": Signal.REWARD,
    "episode return": Signal.REWARD,
    "cumulative reward": Signal.REWARD,
    "total reward": Signal.REWARD,
    "total return": Signal.REWARD,
    "total episode reward": Signal.REWARD,
    "score per episode": Signal.REWARD,
    "episode score": Signal.REWARD,
    "reward std": Signal.REWARD_STD,
    "correctness reward": Signal.TASK_REWARD,
    "correct reward": Signal.TASK_REWARD,
    "fraction reward zero std": Signal.FRAC_REWARD_ZERO_STD,
    "episode length": Signal.EPISODE_LENGTH,
    "explained variance": Signal.EXPLAINED_VARIANCE,
    "clip fraction": Signal.CLIP_FRACTION,
    "clip range": Signal.CLIP_RANGE,
    "exploration rate": Signal.EXPLORATION_RATE,
    "exploration epsilon": Signal.EXPLORATION_RATE,
    "epsilon": Signal.EXPLORATION_RATE,
    "epsilon greedy": Signal.EXPLORATION_RATE,
    "completion length": Signal.COMPLETION_LENGTH,
    "completion length max": Signal.COMPLETION_LENGTH_MAX,
    "completion clipped ratio": Signal.CLIPPED_COMPLETION_RATIO,
    "completion length clip ratio": Signal.CLIPPED_COMPLETION_RATIO,
    "completion truncated ratio": Signal.CLIPPED_COMPLETION_RATIO,
    "reward margins": Signal.PREFERENCE_MARGIN,
    "reward accuracies": Signal.PREFERENCE_ACCURACY,
    "logps chosen": Signal.LOGPS_CHOSEN,
    "logps rejected": Signal.LOGPS_REJECTED,
    "pad fraction": Signal.PAD_FRACTION,
    "pad ratio": Signal.PAD_FRACTION,
    "num tokens": Signal.NUM_TOKENS,
    "tokens seen": Signal.NUM_TOKENS,
    "num tokens seen": Signal.NUM_TOKENS,
    "total tokens": Signal.NUM_TOKENS,
    "batch tokens": Signal.BATCH_TOKENS,
    "batch slots": Signal.BATCH_SLOTS,
    **dict.fromkeys(_ACCURACIES, Signal.ACCURACY),
    "perplexity": Signal.PERPLEXITY,
    "codebook perplexity": Signal.CODEBOOK_PERPLEXITY,
    "vq perplexity": Signal.CODEBOOK_PERPLEXITY,
    "code perplexity": Signal.CODEBOOK_PERPLEXITY,
    **{f"perplexity {book}": Signal.CODEBOOK_PERPLEXITY for book in range(_MAX_CODEBOOKS)},
    "load balancing loss": Signal.MOE_AUXILIARY_LOSS,
    "moe max violation": Signal.MOE_MAX_VIOLATION,
    "max attention logit": Signal.MAX_ATTENTION_LOGIT,
    "weight norm": Signal.WEIGHT_NORM,
    "param norm": Signal.WEIGHT_NORM,
    "epoch": Signal.EPOCH,
    "total steps": Signal.TOTAL_STEPS,
    "max steps": Signal.TOTAL_STEPS,
    "warmup steps": Signal.WARMUP_STEPS,
    "num warmup steps": Signal.WARMUP_STEPS,
}

_MIN_RECALL_RANK = 10
"""The number behind a recall from which it is a rank; a smaller one may be a class."""

_RANKINGS = tuple(
    f"{ranking} {at}{rank}"
    for ranking in ("ndcg", "mrr", "hr", "hit", "hits", "hit rate", "hit ratio", "recall")
    for at in ("", "at ")
    for rank in (1, 3, 5, 10, 20, 50, 100)
    if (ranking, at) != ("recall", "") or rank >= _MIN_RECALL_RANK
)
"""How well what a person wants stands in front, by the first of so many."""

_EVALUATION: Mapping[str, Signal] = {
    **dict.fromkeys(_LOSSES, Signal.EVAL_LOSS),
    "logloss": Signal.EVAL_LOSS,
    "binary logloss": Signal.EVAL_LOSS,
    "multi logloss": Signal.EVAL_LOSS,
    "mlogloss": Signal.EVAL_LOSS,
    "elbo": Signal.EVAL_LOSS,
    "elbo loss": Signal.EVAL_LOSS,
    "negative elbo": Signal.EVAL_LOSS,
    **dict.fromkeys(_ERRORS, Signal.EVAL_LOSS),
    **dict.fromkeys(_ACCURACIES, Signal.EVAL_ACCURACY),
    "perplexity": Signal.EVAL_PERPLEXITY,
    "reward": Signal.EVAL_REWARD,
    "return": Signal.EVAL_REWARD,
    "episode reward": Signal.EVAL_REWARD,
    "episode return": Signal.EVAL_REWARD,
    "total reward": Signal.EVAL_REWARD,
    "f 1": Signal.EVAL_SCORE,
    "f 1 score": Signal.EVAL_SCORE,
    "overall f 1": Signal.EVAL_SCORE,
    "mcc": Signal.EVAL_SCORE,
    "matthews correlation": Signal.EVAL_SCORE,
    "matthews corrcoef": Signal.EVAL_SCORE,
    "rouge 1": Signal.EVAL_SCORE,
    "rouge 2": Signal.EVAL_SCORE,
    "rouge l": Signal.EVAL_SCORE,
    "rouge lsum": Signal.EVAL_SCORE,
    "bleu": Signal.EVAL_SCORE,
    "bleu score": Signal.EVAL_SCORE,
    "bleu 4": Signal.EVAL_SCORE,
    "sacrebleu": Signal.EVAL_SCORE,
    "exact match": Signal.EVAL_SCORE,
    **dict.fromkeys(("ndcg", "mrr", *_RANKINGS), Signal.EVAL_SCORE),
    "win rate": Signal.EVAL_SCORE,
    "dice": Signal.EVAL_SCORE,
    "dice score": Signal.EVAL_SCORE,
    "iou": Signal.EVAL_SCORE,
    "wer": Signal.EVAL_ERROR_RATE,
    "word error rate": Signal.EVAL_ERROR_RATE,
    "cer": Signal.EVAL_ERROR_RATE,
    "character error rate": Signal.EVAL_ERROR_RATE,
}

# If these are measured on training batches, their names say so.
_HELD_OUT: Mapping[str, Signal] = {
    "map": Signal.MEAN_AVERAGE_PRECISION,
    "map 50": Signal.MEAN_AVERAGE_PRECISION,
    "map 50 95": Signal.MEAN_AVERAGE_PRECISION,
    "map 0 5": Signal.MEAN_AVERAGE_PRECISION,
    "map 0 5 95": Signal.MEAN_AVERAGE_PRECISION,
    "bbox map": Signal.MEAN_AVERAGE_PRECISION,
    "segm map": Signal.MEAN_AVERAGE_PRECISION,
    "miou": Signal.MEAN_INTERSECTION_OVER_UNION,
    "fid": Signal.FRECHET_INCEPTION_DISTANCE,
    "fid score": Signal.FRECHET_INCEPTION_DISTANCE,
    "fid 50 k": Signal.FRECHET_INCEPTION_DISTANCE,
    "fid 50 k full": Signal.FRECHET_INCEPTION_DISTANCE,
    "frechet inception distance": Signal.FRECHET_INCEPTION_DISTANCE,
}

_IN_PERCENT = SHARES | {Signal.EVAL_ERROR_RATE}
"""Signals of which a name may say that they are logged in percent."""

_OF_AGENTS = frozenset(
    {
        *(Signal.REWARD, Signal.EVAL_REWARD, Signal.EPISODE_LENGTH),
        *(Signal.POLICY_LOSS, Signal.VALUE_LOSS, Signal.POLICY_ENTROPY),
    }
)
"""Signals that trainings of several agents log for each, with its number: "Actor Loss 1", "agent0/reward"."""

_SUBSETS = frozenset({"forget", "retain"})
"""The sets of unlearning, in front of a part of the data."""

_SPLIT_WORDS = EVAL | TRAIN

# A lower bound is logged as it is, or negated as a loss.
_EITHER_SIGN = frozenset({"elbo", "elbo loss"})

# The order of the words distinguishes a speed from its inverse.
_STEP_WORDS = "batch|batches|it|its|iter|iters|iteration|iterations|step|steps"
_SPEEDS: Mapping[str, Meaning] = {
    "(tok|tokens) (per (gpu|device) )?(per )?(s|sec|second)( (per )?(gpu|device))?|tps": Meaning(
        Signal.TOKENS_PER_SECOND
    ),
    f"({_STEP_WORDS}|samples|sequences|examples|images|imgs|frames) (per )?(s|sec|second)": Meaning(
        Signal.THROUGHPUT
    ),
    "sps|fps|throughput": Meaning(Signal.THROUGHPUT),
    # Time steps are a count of steps of an environment.
    f"(s|sec|seconds) (per )?({_STEP_WORDS})|time (per ({_STEP_WORDS})|batch|it|iter|iteration)": Meaning(
        Signal.STEP_TIME
    ),
    "(step|iter|iteration) time( s| sec| seconds)?": Meaning(Signal.STEP_TIME),
    "(avg )?batch cost": Meaning(Signal.STEP_TIME),  # PaddlePaddle
    "(avg )?(data|reader) cost": Meaning(Signal.DATA_TIME),
    f"ms (per )?({_STEP_WORDS})|(step|iter|iteration) time ms": Meaning(Signal.STEP_TIME, 0.001),
}
_BEFORE_SPEEDS = "(?:(?:train|training|perf|performance|time|timing|timings|speed|charts|metrics|stats) )*"

# Names whose words alone would not tell their meaning.
_EXACT = {
    "data/valid_tokens": Meaning(Signal.BATCH_TOKENS),
    "amp/skipped_steps": Meaning(Signal.SKIPPED_STEPS),
    "time_metrics/data_loading(%)": Meaning(Signal.DATA_SHARE, 0.01),
}

_OF_A_LIST = lazy_pattern(r"(?:acc|accuracy|prec)[ _./-]\d+$", re.IGNORECASE)
"""An accuracy of several, such as that of the second head, ``acc_1``. Top-1 is ``acc1`` or ``acc@1``."""

_OF_A_LOSS = lazy_pattern("loss(?:es)?/", re.IGNORECASE)
"""How scripts name the group in which they log all that an update gives, such as ``losses/grad_norm``."""

_SIGN_UNKNOWN = frozenset({Signal.POLICY_ENTROPY, Signal.KL_UNKNOWN_UNIT, Signal.REWARD, Signal.EVAL_REWARD})
"""Signals that such a group may hold as terms of a loss, with another sign or factor."""


def fallback(tag: str) -> Meaning | None:
    """Return the meaning of all words of ``tag`` together; None if they are not clear."""
    if _OF_A_LIST.search(tag):
        return None
    meaning = _EXACT.get(tag) or probe(tag) or _meaning_of_words(tag)
    if meaning is not None or not _OF_A_LOSS.match(tag):
        return meaning
    inner = _meaning_of_words(tag.partition("/")[2])
    return None if inner is None or inner.signal in _SIGN_UNKNOWN else inner


def _meaning_of_words(tag: str) -> Meaning | None:
    """Return the meaning of the words of a tag, without what only says of which part or agent they are."""
    words = words_of(COMPARED.sub("", tag))
    words = [word for before, word in pairwise(["", *words]) if not (before in EVAL and word.isdigit())]
    words = [
        word for word, after in pairwise([*words, ""]) if not (word in _SUBSETS and after in _SPLIT_WORDS)
    ]
    meaning = _meaning(words)
    rest = _without_agents(words)
    if meaning is not None or len(rest) == len(words):
        return meaning
    inner = _meaning(rest)
    return inner if inner is not None and inner.signal in _OF_AGENTS else None


def _without_agents(words: Sequence[str]) -> Sequence[str]:
    """Return the words without the number of an agent: that after "agent", or the last one."""
    numbers = [
        index
        for index, (before, word) in enumerate(pairwise(["", *words]))
        if word.isdigit() and (before == "agent" or index == len(words) - 1)
    ]
    agents = {index - 1 for index in numbers if words[index - 1] == "agent"}
    return [word for index, word in enumerate(words) if index not in agents.union(numbers)]


def _meaning(words: Sequence[str]) -> Meaning | None:
    """Return the meaning of all of these words together."""
    phrase = " ".join(words)
    if phrase in _COUNTERS:
        return None
    for pattern, speed in _speeds():
        if pattern.fullmatch(phrase):
            return speed
    content = frozenset(spelled(words))
    is_eval = not content.isdisjoint(EVAL)
    is_train = not content.isdisjoint(TRAIN)
    is_percent = not content.isdisjoint(PERCENT)
    content -= EVAL | TRAIN | PERCENT
    for table in _tables(is_eval, is_train):
        meaning = table.get(content) or table.get(content - FILLERS)
        if meaning is not None and is_percent:
            return replace(meaning, factor=0.01) if meaning.signal in _IN_PERCENT else None
        if meaning is not None:
            return meaning
    return None


@cache
def _speeds() -> Sequence[tuple[re.Pattern[str], Meaning]]:
    return [(re.compile(f"{_BEFORE_SPEEDS}(?:{phrase})"), meaning) for phrase, meaning in _SPEEDS.items()]


@cache
def _tables(is_eval: bool, is_train: bool) -> Sequence[Mapping[frozenset[str], Meaning]]:
    """Return the tables of names that count, with their words as sets."""
    tables = [_EVALUATION if is_eval else _TRAINING, {} if is_train else _HELD_OUT]
    return [
        {
            frozenset(words.split()): Meaning(signal, either_sign=words in _EITHER_SIGN)
            for words, signal in rows.items()
        }
        for rows in tables
    ]
