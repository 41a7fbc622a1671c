"""What the words beside a number say: a counter, a metric, or something that is neither."""

import re
from functools import lru_cache

from sentinel.common.lazy_pattern import lazy_pattern

_SURE = lazy_pattern(
    r"loss|(?<![a-z])accs?(?![a-z])|accurac(?:y|ies)|(?<=[a-z])Acc(?![a-z])|(?<![a-z])err(?![a-z])|error|reward|return(?![a-z])|score"
    r"|(?<![a-z])(?:auc|auroc|f1|fb1|map|ap|mrr|ndcg|iou|miou|dice|fid|psnr|ssim|kl|nll|elbo|bpd|bpc|mmd|wer|cer|"
    r"mse|mae|rmse|mape|mpjpe|r2|ppl|lr|rew|eps|nsdr|xent|corr|lm|reco|l1|l2|mcc|eer|top\d)(?![a-z])"
    r"|pearson|spearman|fscore|f.?measure|precision|recall|perplexity|bleu|rouge|entropy|grad|(?<![a-z])norm(?![a-z])"
    r"|learning.?rate|epsilon|fitness|win.?rate|success.?rate|likelihood|advantage|penalty|fidelity|divergence|residual|exploitability|specificity"
    r"|sensitivity|explained.?variance|approx_kl|clip.?frac|hit.?ratio"
    r"|(?<![a-z])(?:p[eé]rdida|perda|perte|perdita|verlust|exactitud|acur[aá]cia|accuratezza|genauigkeit|recompensa"
    r"|r[eé]compense|ricompensa|belohnung)(?![a-z])|потер[яи]|точность|награда"
    r"|损失|准确率|正确率|精确率|召回率|奖励|回报|误差|学习率|損失|正解率|報酬|손실|정확도|보상",
    re.IGNORECASE,
)
_NO_LOSS = lazy_pattern(
    r"stack.?loss|stop.?loss|blood.?loss|weight.?loss|hearing.?loss|packet.?loss|path.?loss|player reward|"
    r"profit|heat.?loss|loss.?given|loss.?ratio",
    re.IGNORECASE,
)
_WEAK = lazy_pattern(
    r"(?<![a-z])(?:train|training|val|valid|validation|test|dev|eval|value|cost|alpha|beta|gap|avg|mean|std|min|max|"
    r"rate|weight|critic|actor|policy|total|energy|pk|windiff|z_mean|z_std|momentum|confidence|similarity)(?![a-z])",
    re.IGNORECASE,
)
_NO_METRIC = lazy_pattern(
    r"(?<![a-z])(?:times?|eta|elapsed|secs?|seconds?|ms|minutes?|hours?|speed|throughput|fps|mem|memory|gpu|gpus|cpu|cuda|"
    r"device|pid|port|version|seed|rank|worker|workers|ip|size|shape|dim|dims|num|number|params|parameters|images|"
    r"date|hour|python|torch|line|lines|file|files|id|ids|address|thread|layers?|samples|tokens|examples|patience|"
    r"counter|reader_cost|batch_cost|ips|wps|ups|wpb|bsz|wall|timestamp|runtime|duration|cost_time|tokens_seen|"
    r"samples_per_second|steps_per_second|iterations_per_second|code|status|budget|limit|iteration_time|rss|vram|"
    r"took|finished|loading|load|saved?|saving|remaining|left|warmup|capacity|bytes|free|used)(?![a-z])"
    r"|_times?(?![a-z])|time_|per_sec|/s(?:ec)?$|(?<![a-z])it/s",
    re.IGNORECASE,
)
_IDENTITY = lazy_pattern(
    r"(?<![a-z])(?:pid|port|version|seed|rank|ip|id|ids|address|thread|device|python|torch|cuda|date|line|file|code|"
    r"num_workers|workers?|shape|dims?|layers?|hidden|heads?)(?![a-z])",
    re.IGNORECASE,
)
_TIME_UNIT = lazy_pattern(
    r"\s?(?:(?:s|ms|us|seconds)/(?:it|step|batch)|s|secs?|seconds?|ms|mins?|minutes?|hours?|hrs?|h|it/s|it|"
    r"tok/s|samples?/s(?:ec)?|ins/s|fps|GB|MB|KB|GiB|MiB|KiB|images?|imgs?|tokens?/s(?:ec)?|steps?/s(?:ec)?|"
    r"examples?/s(?:ec)?|words?/s|sent/s|batch(?:es)?/s(?:ec)?|MB/s|img/s|it/sec|files?|params?|parameters|lines?|"
    r"%\|)(?![A-Za-z])"
)

_PHASE = lazy_pattern(
    r"(?<![a-z])(?:train|training|trn|val|valid|validate|validating|validation|test|testing|eval|evaluation|evaluating|dev|"
    r"holdout|summary|teacher|student|ema)(?![a-z])|训练|验证|测试",
    re.IGNORECASE,
)

_COUNTERS = (
    ("epoch", r"epochs?(?:[ _-]?(?:id|idx|index|no|num|number))?|ep|meta epoch|轮次|轮数|エポック|에폭"),
    (
        "step",
        r"(?:global|env|train|training|gradient|optimizer|total|num|current|time)?[ _-]?"
        r"(?:steps?|iters?|iterations?|updates?|timesteps?)|steps?_done|its|itr|rounds?|round_?(?:number|num|idx|id)|kimg|total_num_steps"
        r"|num_updates|total T|t|tick|rollout|trees|步数|迭代次数|ステップ",
    ),
    ("batch", r"(?:mini[ _-]?)?batch(?:es)?(?:[ _-]?(?:id|idx|index|no|num))?|it"),
    (
        "episode",
        r"(?:num[ _-]?)?(?:episodes?|games?|generations?|gen|matches|evaluations?)(?:[ _-]?num)?"
        r"|回合|エピソード|에피소드",
    ),
    ("frame", r"frames?|num_frames"),
    ("count", r"idx|index|i|no|#"),
)
_BEFORE = r"(?-i:[\s_\-./(|\u3000-\U0010ffff])"
"""What may stand before a counter, as letters of languages that write no words apart may."""

_COUNTER = {kind: lazy_pattern(rf"(?:.*{_BEFORE})?(?:{words})", re.IGNORECASE) for kind, words in _COUNTERS}
_NO_STEP = lazy_pattern(r"timing|ep(?:isode)?s?[_ ]?steps?|steps?[_ ]per|steps_per", re.IGNORECASE)
"""Words of lengths and durations that end like counters."""

_LENGTH = lazy_pattern(
    r"(?:num(?:ber)?[ _](?:of[ _])?)?steps(?:[ _](?:taken|used))?|step[ _]count|步数", re.IGNORECASE
)
"""Words for what the lines of episodes tell of how long each was."""

_NO_COUNTER = lazy_pattern(
    r"(?:^|.*[\s_])(?:max|num|of|per|every|warmup|best|last|logging|save|eval|from|for|total|after|patience|in|since)"
    r"[ _-][A-Za-z _-]*",
    re.IGNORECASE,
)
_YET_COUNTER = lazy_pattern(
    r".{0,40}(?:total|num|eval)[ _/-](?:time|env)?_?(?:steps?|epochs?|timesteps|updates|num_steps|episodes)"
    r"|.{0,40}total T",
    re.IGNORECASE,
)

_REMARK = lazy_pattern(
    r" ?\((?:(?:higher|bigger|larger|lower|smaller) is better|correct ?/ ?total)\)", re.IGNORECASE
)
_ENDS_OF_REMARKS = " better)", "otal)"
"""What some programs print behind the name of a metric, and how that ends."""

_LEARNING_RATE = lazy_pattern(r"(?<![a-z])lr(?![a-z])|learning.?rate", re.IGNORECASE)
_ROUNDED_ZERO = lazy_pattern(r"[-+]?0?\.0{2,3}")

MAX_NAME = 120
"""Characters of a name."""


@lru_cache(4096)
def counter(name: str) -> str | None:
    """Return what a name counts: ``epoch``, ``step``, ``batch``, ``episode``, ``frame`` or ``count``."""
    if len(name) > 60 or _NO_STEP.search(name) or _SURE.search(name):
        return None
    if _NO_COUNTER.fullmatch(name) and not _YET_COUNTER.fullmatch(name):
        return None
    for kind, words in _COUNTER.items():
        if words.fullmatch(name):
            return kind
    return None


@lru_cache(4096)
def is_length(name: str) -> bool:
    """Return whether a name that counts steps tells, beside the count of an episode, how long this was."""
    return _LENGTH.fullmatch(name) is not None


@lru_cache(4096)
def says_metric(name: str) -> bool:
    """Return whether a name surely is that of a metric."""
    name = name[:MAX_NAME]
    return bool(_SURE.search(name)) and not says_other_loss(name) and not says_other(name)


def says_other_loss(name: str) -> bool:
    """Return whether a name is that of a loss that no training has: of heat, of weight, of packets."""
    return _NO_LOSS.search(name[:MAX_NAME]) is not None


@lru_cache(4096)
def may_be_metric(name: str) -> bool:
    """Return whether a name is used for metrics and for other things."""
    return bool(_WEAK.search(name[:MAX_NAME])) and not says_other(name)


@lru_cache(4096)
def says_other(name: str) -> bool:
    """Return whether a name is that of a speed, a time, a size or an id."""
    return bool(_NO_METRIC.search(name[:MAX_NAME]))


@lru_cache(4096)
def is_measure(name: str) -> bool:
    """Return whether a name that is no metric still is measured: a speed, a time, a memory, and no id."""
    return not _IDENTITY.search(name[:MAX_NAME])


def is_rounded_away(name: str, text: str) -> bool:
    """Return whether a printed number is a learning rate of so few digits that zero says nothing of it: verl
    prints 1e-6 as 0.000.
    """
    return _ROUNDED_ZERO.fullmatch(text) is not None and _LEARNING_RATE.search(name) is not None


def without_remarks(line: str) -> str:
    """Return a line without what stands behind the names of its metrics: "acc (higher is better) : 0.5"."""
    return _REMARK.sub("", line) if any(end in line for end in _ENDS_OF_REMARKS) else line


def unit_of_other(after: str) -> str:
    """Return the unit of speed, time or size in the text after a number; nothing if there is none."""
    unit = _TIME_UNIT.match(after[:24])
    return unit[0].strip() if unit else ""


def phase(text: str) -> str:
    """Return the words of a text that name a part of the training, such as ``valid``."""
    return " ".join(["val" if word == "validate" else word for word in _PHASE.findall(text[-160:])])
