"""The reference's log-probability of one fixed batch, which must stay what it was.

A reference that shares weights with the policy moves along with it, so that the KL stays small and means
nothing.

## Cost
A forward pass of the reference over two samples at each measurement.

## When it misleads
It needs `reference=` and a batch with `input_ids`. It is off for a reference in training mode, because
dropout would draw random numbers.

## Source
Probe `dpo/fixed_batch_ref_logp` of the catalogue (L9, R2).
"""

from collections.abc import Mapping
from typing import TYPE_CHECKING

from sentinel.probes.base import Moment, Numbers, ProbeSet, Subject, Unsuitable

if TYPE_CHECKING:
    import torch

_MAX_SAMPLES = 2  # of the fixed batch
_MAX_TOKENS = 64  # of each of its samples


class Reference(
    ProbeSet,
    shows={
        "dpo/reference_logp": "the reference's mean log-probability of a token of one fixed batch",
        "dpo/reference_drift": "change of that since the first measurement, nats",
    },
    entries=("L9", "R2"),
):
    """Keeps the first batch, and asks the reference again and again."""

    def __init__(self, subject: Subject) -> None:
        super().__init__(subject)
        self._tokens: torch.Tensor | None = None
        self._first: torch.Tensor | None = None

    def measure(self, moment: Moment) -> Numbers:
        """Return two numbers, if there is a reference and was a batch of tokens."""
        reference = self.subject.reference
        if reference is None:
            return {}
        if any(module.training for module in reference.modules() if "Dropout" in type(module).__name__):
            raise Unsuitable("the reference is in training mode, so its dropout draws random numbers")
        if self._tokens is None:
            if not isinstance(moment.batch, Mapping) or "input_ids" not in moment.batch:
                return {}
            self._tokens = moment.batch["input_ids"][:_MAX_SAMPLES, :_MAX_TOKENS].clone()
        logits = Moment(outputs=reference(self._tokens)).logits()
        if logits is None:
            raise Unsuitable("the reference gives no logits")
        log_likelihood = logits[:, :-1].float().log_softmax(-1).gather(-1, self._tokens[:, 1:, None]).mean()
        self._first = log_likelihood if self._first is None else self._first
        return {
            "dpo/reference_logp": log_likelihood,
            "dpo/reference_drift": (log_likelihood - self._first).abs(),
        }
