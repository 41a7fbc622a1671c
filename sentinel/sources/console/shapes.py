"""The shapes of lines that a training prints: how each counts its steps.

Every pattern takes time linear in the line.
"""

import re
from collections.abc import Mapping

import msgspec

from sentinel.common.lazy_pattern import lazy_pattern
from sentinel.sources.console.printed import NUMBER


class Shape(msgspec.Struct, frozen=True):
    """A form of metric lines.

    ``line`` finds the step, in some of the groups ``step``, ``planned`` (the last step), ``iter`` (which may
    begin anew in each epoch), ``epoch``, ``batch`` (within an epoch that the line does not tell) and
    ``batches`` (in an epoch, beside ``iter`` or ``batch``). A group of another name is a metric. ``plain``
    says that the form of the step is proof enough. Otherwise the line counts only if it has the name of a
    known metric. Every line of the shape holds ``word``, in upper or lower case; this spares most lines the
    pattern.
    """

    name: str
    line: re.Pattern[str]
    plain: bool = True
    word: str = ""
    names: Mapping[str, str] | None = None  # the usual names of metrics that are printed under other names


_LONG = r"(?:\d{1,3}(?:,\d{3})+(?!\d)|\d{1,15})"
"""Pattern of a count, with or without separators of thousands."""

KERAS = "keras"
"""The shape of the line of a whole epoch, whose number stands on an earlier line (`begun_epoch`)."""

COUNT = "count"
"""The shape of a line that begins with the bare number of its step."""

IN_EPOCH = ("batch", "part of all")
"""The shapes of lines that tell only the batch within an epoch."""

OF_ANY_PROGRAM = frozenset({"deepspeed", "deepspeed overflow", "deepspeed speed"})
"""The shapes of lines that stand beside the metrics of a program, whatever shape those have."""

SHAPES = (
    Shape(KERAS, lazy_pattern(r"^\s{0,9}(\d{1,15})/\1 (?:\[=+\] |━+ )?(?:- )?\d{1,9}m?s(?!\w)")),
    Shape(
        "megatron",  # also GPT-NeoX
        lazy_pattern(r"(?<!\w)iteration +(?P<step>\d{1,15})/ *(?P<planned>\d{1,15}) +\|"),
        word="iteration ",
    ),
    Shape(
        "megatron validation",
        lazy_pattern(
            r"(?<!\w)(?:validation|test) (?:loss|results) at (?:iteration|the end)? ?(?P<step>\d{1,15})"
        ),
        names={"lm loss value": "lm loss validation", "lm loss PPL": "lm loss validation ppl"},
        word=" at ",
    ),
    Shape(
        "composer", lazy_pattern(r"^\[metric\]\[batch=(?P<step>\d{1,15})\](?=:)"), word="[metric]"
    ),  # FileLogger
    Shape(
        "fairseq validation",
        lazy_pattern(r"(?<!\w)epoch (?P<epoch>\d{1,9}) \| valid on '[^'|]{1,100}' subset \|"),
        names={n: f"valid_{n}" for n in ("loss", "nll_loss", "ppl", "wps", "wpb", "bsz", "best_loss")},
        word="valid on",
    ),
    Shape(
        "darknet",
        lazy_pattern(
            rf"^\s*(?P<step>\d{{1,15}}): (?P<batch_loss>{NUMBER}), (?P<loss>{NUMBER}) avg(?: loss)?,"
            rf" (?P<learning_rate>{NUMBER}) rate,(?= )"
        ),
        word=" avg",
    ),
    Shape("boosting", lazy_pattern(r"^(?:\[(?P<step>\d{1,15})\]\t|(?P<round>\d{1,15}):\t(?=learn: ))")),
    Shape(
        "deepspeed overflow",
        lazy_pattern(r"loss scale(?:: \d+, reducing| from \d+) to (?P<loss_scale>\d+(?:\.\d+)?)"),
        word="loss scale",
    ),
    Shape(
        "deepspeed",
        lazy_pattern(r"(?<!\w)step=(?P<step>\d{1,15}), (?=skipped=)"),
        names={"skipped": "skipped_steps"},
        word="skipped=",
    ),
    Shape(
        "deepspeed speed",
        lazy_pattern(r"(?<!\w)micro_step=\d{1,15}/global_step=(?P<step>\d{1,15}), (?=RunningAvg)"),
        word="micro_step=",
    ),
    Shape(
        "marian",
        lazy_pattern(
            r"(?<!\w)Ep\. (?P<epoch>\d{1,9}(?:\.\d{1,9})?) : Up\. (?P<step>\d{1,15}) : Sen\. [\d,]{1,20} : "
            rf"Cost (?P<Cost>{NUMBER})"
        ),
        word=" up. ",
    ),
    Shape(
        "marian validation",
        lazy_pattern(
            r"(?<!\w)Ep\. (?P<epoch>\d{1,9}(?:\.\d{1,9})?) : Up\. (?P<step>\d{1,15})"
            rf"(?= : [\w-]{{1,40}} : {NUMBER} : )"
        ),
        word=" up. ",
    ),
    Shape(
        "espnet",
        lazy_pattern(r"(?<!\w)(?P<epoch>\d{1,9})epoch:train:\d{1,15}-(?P<iter>\d{1,15})batch(?=: )"),
        word="epoch:train:",
    ),
    Shape(
        "espnet validation",  # behind the means of what the batches of the epoch told
        lazy_pattern(
            r"(?<!\w)(?P<epoch>\d{1,9})epoch results: (?:(?!epoch results: ).){1,4000}?(?=\[valid\])"
        ),
        word="epoch results: ",
    ),
    Shape(
        "wenet",
        lazy_pattern(
            r" TRAIN (?:\| steps/sec [\d.]{1,9} ?\| )?Batch (?P<epoch>\d{1,9})/(?P<iter>\d{1,15})(?= loss )"
        ),
        word=" train ",
    ),
    Shape(
        "estimator",  # TensorFlow's evaluation
        lazy_pattern(r"Saving dict for global step (?P<step>\d{1,15})(?=: )"),
        names={n: f"eval_{n}" for n in ("loss", "average_loss", "accuracy", "auc", "precision", "recall")},
        word="saving dict",
    ),
    Shape(
        "char-rnn",
        lazy_pattern(
            r"^\s{0,9}(?P<step>\d{1,15})/(?P<planned>\d{1,15})"
            r" \(epoch (?P<epoch>\d{1,9}(?:\.\d{1,9})?)\)(?=, )"
        ),
        plain=False,
        word=" (epoch ",
    ),
    Shape(
        "xlm",  # also UnsupervisedMT, and SymbolicMathematics, which names its loss by the task
        lazy_pattern(
            r"(?:^|(?<= ))(?P<step>\d{1,15}) - {1,9}[\d.]{1,15} (?:sent/s - |equations/s - "
            rf"(?: {{0,9}}[\d.]{{1,15}} words/s - )?[\w-]{{1,60}}: {{1,9}}(?P<xe_loss>{NUMBER}))"
        ),
        word="/s - ",
    ),
    Shape(
        "build-nanogpt",  # log.txt
        lazy_pattern(
            r"^(?P<step>\d{1,9}) (?:train (?P<train_loss>\d{1,3}\.\d{6}|nan)"
            r"|val (?P<val_loss>\d{1,3}\.\d{4}|nan)|hella (?P<hellaswag>[01]\.\d{4}))$"
        ),
    ),
    Shape(
        "llm.c",  # main.log
        lazy_pattern(
            rf"^s:(?P<step>\d{{1,9}}) (?:tel:(?P<val_loss>{NUMBER})|eval:(?P<hellaswag>{NUMBER})"
            rf"|trl:(?P<train_loss>{NUMBER})(?: lr:(?P<lr>{NUMBER}))?(?: norm:(?P<grad_norm>{NUMBER}))?)$"
        ),
        word="s:",
    ),
    Shape("torchtune", lazy_pattern(r"^(?P<epoch>\d{1,9})\|(?P<step>\d{1,15})\|(?=Loss: )"), word="|loss: "),
    Shape(
        "td3", lazy_pattern(r"^Total T: (?P<step>\d{1,15})(?= Episode Num: )"), word="total t: "
    ),  # and BCQ, by its authors
    Shape(
        "epoch and batch in brackets",  # PyTorch's tutorials of CIFAR-10 and DCGAN
        lazy_pattern(
            r"^\s{0,9}\[(?P<epoch>\d{1,9})(?:, {0,9}|/\d{1,9}\] {0,3}\[ {0,9})"
            r"(?P<iter>\d{1,15})(?:/(?P<batches>\d{1,15}))?\]"
        ),
        plain=False,
        word="[",
    ),
    Shape(
        "epoch and iteration of a part",  # MMEngine
        lazy_pattern(
            r"(?<![\w?&])epoch\(\w{1,9}\)[\s:=\[]{1,6}(?P<epoch>\d{1,9})(?:/\d{1,9})?\]?[\s,|]{0,4}"
            r"\[\s{0,9}(?P<iter>\d{1,15})\s?/(?:\s{0,9}(?P<batches>\d{1,15}))?",
            re.IGNORECASE,
        ),
        plain=False,
        word="epoch(",
    ),
    Shape(
        "epoch and iteration",  # timm, MMCV, the examples of PyTorch
        lazy_pattern(
            r"(?<![\w?&])(?:epoch|train)[\s:=\[]{1,6}(?P<epoch>\d{1,9})(?:/\d{1,9})?\]?[\s,|]{0,4}"
            r"\[\s{0,9}(?P<iter>\d{1,15})\s?/(?:\s{0,9}(?P<batches>\d{1,15}))?",
            re.IGNORECASE,
        ),
        plain=False,
        word="[",
    ),
    Shape(
        "epoch and iteration in parentheses",  # minimind
        lazy_pattern(
            r"(?<![\w?&])epoch[\s:=\[]{0,6}(?P<epoch>\d{1,9})\s?/\s?\d{1,9}\]?[\s,|:-]{0,4}"
            r"\(\s{0,9}(?P<iter>\d{1,15})\s?/\s{0,9}(?P<batches>\d{1,15})\)",
            re.IGNORECASE,
        ),
        plain=False,
        word="epoch",
    ),
    Shape(
        "epoch, step",
        lazy_pattern(
            r"(?<![\w?&])epoch[\s:=\[(#]{1,6}(?P<epoch>\d{1,9})(?:/\d{1,9})?[\])]?[\s,|:\[-]{1,5}"
            r"(?:global[ _])?(?:step|iter|iteration|it|batch)[\s:=\[(#]{1,6}(?:\d{1,9}-)?"  # MXNet's "[0-50]"
            rf"(?P<iter>{_LONG})(?!\.?\d)"
            r"(?:\s?/\s?(?P<batches>\d{1,15}))?",
            re.IGNORECASE,
        ),
        plain=False,
        word="epoch",
    ),
    Shape(
        "iteration of a part",  # MMEngine
        lazy_pattern(
            r"(?<![\w.?&])iter\(\w{1,9}\)[\s:=\[(#]{1,12}(?P<step>\d{1,15})(?:\s?/\s{0,5}(?P<planned>\d{1,15}))?(?!\.?\d|%)",
            re.IGNORECASE,
        ),
        plain=False,
        word="iter(",
    ),
    Shape(
        "step",  # torchtune, nanoGPT, nanochat, verl, Detectron2, Tacotron and many others
        lazy_pattern(
            r"(?<![\w.?&])(?P<other>(?:total|max|num|of|per|every|warmup|logging|save|eval(?= \w{2,9}s))"
            r"[ _-])?(?:(?:global|time|env|train)[ _]?)?(?:step|iter|iteration|it|update)s?(?:\(\w{1,9}\))?"
            rf"(?:(?:\.\.\. )?[\s:=\[(#]{{1,12}}|-)(?P<step>{_LONG})"
            rf"(?:\s?/\s{{0,5}}(?P<planned>{_LONG}))?(?!\.?\d|%)",
            re.IGNORECASE,
        ),
        plain=False,
    ),
    Shape(
        "epoch",  # fairseq, whose updates are among the pairs
        lazy_pattern(
            r"(?<![\w.?&])(?P<other>(?:total|max|num|(?<!end )of|per|every|warmup)[ _-])?"
            r"ep(?:och|\.)?(?:(?:\.\.\. )?[\s:=\[(#]{1,12}|[-_]?(?=\d))"
            r"(?P<epoch>\d{1,9}(?:\.\d{1,9})?)(?![\d%])"
            r"(?:\s?/\s?\d{1,9})?",
            re.IGNORECASE,
        ),
        plain=False,
        word="ep",
    ),
    Shape(
        "steps passed",  # "Loss after 100 steps: 0.5"
        lazy_pattern(
            r"(?<= after )(?P<step>\d{1,15}) (?:training )?(?:step|iteration|update|episode)s?"
            r"(?= ?[:=,]| is )",
            re.IGNORECASE,
        ),
        plain=False,
        word=" after ",
    ),
    Shape(
        "episode",  # the examples of reinforcement learning, PyTorch's among them
        lazy_pattern(
            r"(?<![\w.?&])(?P<other>(?:total|max|num|of|per|every|last)[ _-])?"
            r"episode[\s:=\[(#]{1,6}(?P<step>\d{1,15})(?:\s?/\s?(?P<planned>\d{1,15}))?(?![\d.]|%)",
            re.IGNORECASE,
        ),
        plain=False,
        word="episode",
    ),
    Shape(
        "batch",
        lazy_pattern(
            r"(?:^|[\]|:-])\s{0,3}batch[\s:=\[(#]{1,6}(?P<batch>\d{1,15})(?:\s?/\s?(?P<batches>\d{1,15}))?(?![\d.]|%)",
            re.IGNORECASE,
        ),
        plain=False,
        word="batch",
    ),
    Shape(
        "part of all",  # PyTorch's quickstart, "[10/200] loss: 0.5"
        lazy_pattern(
            r"(?P<other>(?:test|val|valid|validation|eval|fold|trial|seed|file|rank|gpu|worker|shard)\W{1,3})?"
            r"(?:\[ {0,9}|^\s{0,9})(?P<batch>\d{1,15}) ?/ ?(?P<batches>\d{1,15})"
            r"(?:\]|[:|,-]? {1,3}(?=[A-Za-z]))",
            re.IGNORECASE,
        ),
        plain=False,
        word="/",
    ),
    Shape(
        COUNT,  # "[100] loss: 0.5"
        lazy_pattern(
            r"(?:^|\] )\s{0,9}\[? {0,9}(?P<step>\d{1,15})(?: \| \d{1,9}\.\d\d(?=\]))?"
            r"(?:[\]:]\s{1,3}(?=[A-Za-z])|\s(?=loss))",
            re.IGNORECASE,
        ),
        plain=False,
    ),
)

WORDS = (
    "step",
    "iter",
    "epoch",
    "update",
    "train",
    "loss scale",
    "episode",
    "batch",
    " avg",
    "]\t",
    "learn: ",
    "loss",
    "reward",
    " up. ",
    " sent/s",
    " equations/s",
    " val ",
    " hella ",
    "tel:",
    "trl:",
)
"""A line counts only if it holds one of these words, in upper or lower case. Most other lines hold none."""


def has_word(lowered: str) -> bool:
    """Return whether a line in lower case holds one of `WORDS`."""
    return any(word in lowered for word in WORDS)
