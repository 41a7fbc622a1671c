"""What a classifier predicts at an evaluation: the class that it finds least, and how sure it is.

The accuracy of a model that predicts the largest class alone looks like that of a poor one.

## Cost
Two counts by class for each batch of an evaluation, on its device.

## When it misleads
It needs `probe.evaluate(batch=..., outputs=...)` with labels in the batch. Classes that the evaluation has
fewer than five times do not count.

## Source
Probes `eval/recall_min` and `eval/pred_entropy` of the catalogue (V6).
"""

from typing import TYPE_CHECKING

from sentinel.probes.base import Moment, Numbers, ProbeSet, Subject

if TYPE_CHECKING:
    import torch

_MIN_SAMPLES = 5  # of a class whose recall counts
_MAX_CLASSES = 10_000  # more are tokens of a vocabulary


class Predictions(
    ProbeSet,
    shows={
        "eval/recall_min": "recall of the class that is found least",
        "eval/prediction_entropy": "entropy of the predicted classes over that of the labels",
    },
    entries=("V6",),
):
    """Counts labels, hits and predictions by class over the batches of an evaluation."""

    def __init__(self, subject: Subject) -> None:
        super().__init__(subject)
        self._counts: torch.Tensor | None = None  # labels, hits and predictions x classes

    def evaluate(self, moment: Moment) -> None:
        """Count a batch."""
        import torch

        logits = moment.logits()
        labels = moment.labels()
        if logits is None or labels is None or logits.ndim != 2 or labels.shape != logits.shape[:1]:
            return
        if (classes := logits.shape[1]) > _MAX_CLASSES:
            return
        labels = labels.to(logits.device)
        counts = (labels >= 0)[:, None]  # others are masked
        predicted, labelled = (
            torch.nn.functional.one_hot(index, classes) * counts
            for index in (logits.argmax(1), labels.clamp(0))
        )
        more = torch.stack([labelled.sum(0), (labelled * predicted).sum(0), predicted.sum(0)]).float()
        self._counts = more if self._counts is None else self._counts + more

    def evaluated(self) -> Numbers:
        """Return two numbers of the whole evaluation."""
        import torch

        if self._counts is None:
            return {}
        (labelled, hits, predicted) = self._counts
        self._counts = None
        recall = torch.where(labelled >= _MIN_SAMPLES, hits / labelled.clamp_min(1), torch.inf).min()
        entropy, most = (torch.special.entr(counts / counts.sum()).sum() for counts in (predicted, labelled))
        return {
            "eval/recall_min": torch.where(recall.isfinite(), recall, torch.nan),
            "eval/prediction_entropy": entropy / most.clamp_min(1e-12),
        }
