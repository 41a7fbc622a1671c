"""The loss of a text's last quarter beside that of its first one.

Within the context that a model was trained on, later tokens are easier. Beyond it they become harder.

## Cost
A cross-entropy over the logits of a step, on their device.

## When it misleads
It needs `outputs=` and a batch with `labels`, and supposes that logits predict the next token. Packed short
texts have no late tokens, so they show nothing.

## Source
Probe `loss/len_bucket` of the catalogue (L5): a loss that is a fifth higher is too high.
"""

from sentinel.probes.base import Moment, Numbers, ProbeSet

_POSITION_PARTS = 4  # of a sequence, of which the first and the last are compared
_MIN_TOKENS = 16  # of a sequence


class LossByPosition(
    ProbeSet,
    shows={"loss/late_early_ratio": "loss of the last quarter of the positions over that of the first"},
    entries=("L5",),
):
    """Compares two parts of the sequences of a step."""

    def measure(self, moment: Moment) -> Numbers:
        """Return one number, if the loop hands over logits of sequences and their labels."""
        from torch.nn.functional import cross_entropy

        logits = moment.logits()
        labels = moment.labels()
        if logits is None or labels is None or logits.ndim != 3 or labels.shape != logits.shape[:2]:
            return {}
        tokens = labels.shape[1] - 1
        if tokens < _MIN_TOKENS:
            return {}
        tokens_of_part = tokens // _POSITION_PARTS
        early, late = (
            cross_entropy(
                logits[:, :-1].detach().float()[:, positions].flatten(0, 1),
                labels[:, 1:][:, positions].flatten(),
            )
            for positions in (slice(0, tokens_of_part), slice(tokens - tokens_of_part, tokens))
        )
        return {"loss/late_early_ratio": late / early.clamp_min(1e-12)}
