"""How many boxes of a detector survive suppression.

A threshold that is too high, or boxes in the wrong format, leave none, and average precision is zero while
the loss falls.

## Cost
Two additions for each batch of an evaluation, on the host.

## When it misleads
It needs `probe.evaluate(boxes=(before, after))` with the counts of a batch. An untrained detector keeps few.

## Source
Probes `det/n_pre_nms` and `det/n_post_nms` of the catalogue (V3, V4): less than a hundredth is too few.
"""

from sentinel.probes.base import Cost, Moment, Numbers, ProbeSet, Subject


class Boxes(
    ProbeSet,
    shows={
        "eval/boxes_before_nms": "boxes above the score threshold, in an evaluation",
        "eval/boxes_after_nms": "boxes after suppression",
        "eval/boxes_kept": "share of the boxes that suppression keeps",
    },
    entries=("V3", "V4"),
    cost=Cost.DEFAULT,
    needs_torch=False,
):
    """Adds up what the evaluation tells."""

    def __init__(self, subject: Subject) -> None:
        super().__init__(subject)
        self._counts: list[tuple[int, int]] = []

    def evaluate(self, moment: Moment) -> None:
        """Add the boxes of a batch."""
        if moment.boxes is not None:
            self._counts.append(moment.boxes)

    def evaluated(self) -> Numbers:
        """Return the counts of the whole evaluation."""
        if not self._counts:
            return {}
        (before, after) = map(sum, zip(*self._counts, strict=True))
        self._counts = []
        return {
            "eval/boxes_before_nms": before,
            "eval/boxes_after_nms": after,
            "eval/boxes_kept": after / before if before else 0.0,
        }
