"""Tells which directories of an archive belong together, by their names alone.

A listing of a million objects is too long to look into any of them. So a directory whose name says that it is
a piece of what lies above is judged with that, and every other directory by itself.
"""

import re

_INNER = re.compile(
    r"checkpoint-(\d+|best|last|final)|(best|last)-checkpoint"  # of Hugging Face's Trainer
    r"|[Tt]rain(ing)?|[Vv]al(id(ation)?)?|[Ee]val|[Tt]est"  # of one training with TensorBoard
    r"|\d{10}\.\d+"  # what `add_hparams` of torch writes
    r"|vis_data|tensorboard|tb|tb_logs|run_\d+_\d+\.\d+"  # whose settings lie above
    r"|files|media|\.hydra"  # of W&B, SwanLab and Hydra
    r"|scalars|texts|videos|plots"  # of TorchRL and DVCLive
)
_CURVES = re.compile(r"(?P<stem>.*[-_.])([Tt]rain(ing)?|[Vv]al(id(ation)?)?|[Ee]val|[Tt]est)")
"""`loss_train` and `loss_val`, as ``add_scalars`` of torch writes them."""

_WITH_ALL_BELOW = re.compile(r"(?P<above>.*?(/[0-9a-f]{32}|/plots))/(metrics|params|tags|artifacts)(/.*)?")
"""A run of MLflow, and DVCLive's: their metrics may lie in directories of any name."""


def unit_of(directory: str) -> str:
    """Return the beginning that the paths of all directories of its unit share, and of those below.

    No directory belongs to two units, and what belongs to one has no other unit's beginning that is longer.
    """
    if match := _WITH_ALL_BELOW.fullmatch(directory):
        directory = match["above"]
    above, _, name = directory.rpartition("/")
    while above and (_INNER.fullmatch(name) or name == above.rpartition("/")[2]):
        directory = above
        above, _, name = directory.rpartition("/")
    curves = _CURVES.fullmatch(name)
    return f"{above}/{curves['stem']}" if curves else f"{directory}/"
