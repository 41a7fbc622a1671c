"""The shapes of lines that a training prints: how each counts its steps.

Every pattern takes time linear in the line.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass

from sentinel.sources.console.printed import NUMBER


@dataclass(frozen=True)
class Shape:
    """A form of metric lines.

    ``line`` finds the step, in some of the groups ``step``, ``planned`` (the last step), ``iter`` (which may
    begin anew in each epoch) and ``epoch``. A group of another name is a metric. ``plain`` says that the form
    of the step is proof enough. Otherwise the line counts only if it has the name of a known metric.
    """

    name: str
    line: re.Pattern[str]
    plain: bool = True
    names: Mapping[str, str] | None = None  # the usual names of metrics that are printed under other names


KERAS = "keras"
"""The shape of the line of a whole epoch, whose number stands on an earlier line (`begun_epoch`)."""

SHAPES = (
    Shape(KERAS, re.compile(r"^\s{0,9}(\d{1,15})/\1 (?:\[=+\] |━+ )?(?:- )?\d{1,9}m?s(?!\w)")),
    Shape(
        "megatron",  # also GPT-NeoX
        re.compile(r"(?<!\w)iteration +(?P<step>\d{1,15})/ *(?P<planned>\d{1,15}) +\|"),
    ),
    Shape(
        "megatron validation",
        re.compile(
            r"(?<!\w)(?:validation|test) (?:loss|results) at (?:iteration|the end)? ?(?P<step>\d{1,15})"
        ),
        names={"lm loss value": "lm loss validation", "lm loss PPL": "lm loss validation ppl"},
    ),
    Shape("composer", re.compile(r"^\[metric\]\[batch=(?P<step>\d{1,15})\](?=:)")),  # FileLogger
    Shape(
        "fairseq validation",
        re.compile(r"(?<!\w)epoch (?P<epoch>\d{1,9}) \| valid on '[^'|]{1,100}' subset \|"),
        names={n: f"valid_{n}" for n in ("loss", "nll_loss", "ppl", "wps", "wpb", "bsz", "best_loss")},
    ),
    Shape(
        "darknet",
        re.compile(
            rf"^\s*(?P<step>\d{{1,15}}): (?P<batch_loss>{NUMBER}), (?P<loss>{NUMBER}) avg(?: loss)?,"
            rf" (?P<learning_rate>{NUMBER}) rate,(?= )"
        ),
    ),
    Shape("boosting", re.compile(r"^(?:\[(?P<step>\d{1,15})\]\t|(?P<round>\d{1,15}):\t(?=learn: ))")),
    Shape(
        "cyclegan",  # also pix2pix, "loss_log.txt"
        re.compile(r"\(epoch: (?P<epoch>\d{1,9}), iters: (?P<iter>\d{1,15})"),
    ),
    Shape(
        "deepspeed overflow",
        re.compile(r"loss scale(?:: \d+, reducing| from \d+) to (?P<loss_scale>\d+(?:\.\d+)?)"),
    ),
    Shape(
        "deepspeed",
        re.compile(r"(?<!\w)step=(?P<step>\d{1,15}), (?=skipped=)"),
        names={"skipped": "skipped_steps"},
    ),
    Shape(
        "deepspeed speed",
        re.compile(r"(?<!\w)micro_step=\d{1,15}/global_step=(?P<step>\d{1,15}), (?=RunningAvg)"),
    ),
    Shape(
        "epoch and iteration",  # timm, mmengine, the examples of PyTorch
        re.compile(
            r"(?<![\w?&])(?:epoch(?:\(\w{1,9}\))?|train)[\s:=\[]{1,6}(?P<epoch>\d{1,9})(?:/\d{1,9})?\]?,?\s{0,3}"
            r"\[\s{0,9}(?P<iter>\d{1,15})\s?/",
            re.IGNORECASE,
        ),
        plain=False,
    ),
    Shape(
        "epoch, step",
        re.compile(
            r"(?<![\w?&])epoch[\s:=\[(#]{1,6}(?P<epoch>\d{1,9})(?:/\d{1,9})?[\])]?[\s,|:\[-]{1,5}"
            r"(?:global[ _])?(?:step|iter|iteration|batch)[\s:=\[(#]{1,6}(?P<iter>\d{1,15})(?!\.?\d)",
            re.IGNORECASE,
        ),
        plain=False,
    ),
    Shape(
        "step",  # torchtune, nanoGPT, nanochat, verl, Detectron2, Tacotron and many others
        re.compile(
            r"(?<![\w.?&])(?P<other>(?:total|max|num|of|per|every|warmup|eval|validate|logging|save)[ _-])?"
            r"(?:global[ _]?)?(?:step|iter|iteration|update)s?(?:\(\w{1,9}\))?[\s:=\[(#]{1,12}"
            r"(?P<step>\d{1,15})(?:\s?/\s{0,5}(?P<planned>\d{1,15}))?(?![\d.]|%)",
            re.IGNORECASE,
        ),
        plain=False,
    ),
    Shape(
        "epoch",  # fairseq, whose updates are among the pairs
        re.compile(
            r"(?<![\w.?&])(?P<other>(?:total|max|num|of|per|every|warmup)[ _-])?"
            r"epoch[\s:=\[(#]{1,6}(?P<epoch>\d{1,9}(?:\.\d{1,9})?)(?![\d%])",
            re.IGNORECASE,
        ),
        plain=False,
    ),
    Shape(
        "episode",  # the examples of reinforcement learning, PyTorch's among them
        re.compile(
            r"(?<![\w.?&])(?P<other>(?:total|max|num|of|per|every|last)[ _-])?"
            r"episode[\s:=\[(#]{1,6}(?P<step>\d{1,15})(?:/\d{1,15})?(?![\d.]|%)",
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
    "batch=",
    " avg",
    "]\t",
    "learn: ",
)
"""Every line of the shapes above holds one of these words, in upper or lower case."""
