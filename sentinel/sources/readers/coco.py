"""The summary of a COCO evaluation: a list whose numbers have their names by their places alone.

DETR and its descendants log one per epoch and kind of box, such as `test_coco_eval_bbox`.
"""

import re
from collections.abc import Iterator
from typing import Any

from sentinel.common.lazy_pattern import lazy_pattern

_NAME = lazy_pattern(r"coco_eval_\w+$", re.IGNORECASE)
_PRECISIONS = ("mAP", "mAP_50", "mAP_75")
_RECALLS = ("AR_1", "AR_10", "AR_100")
_OF_BOXES = (*_PRECISIONS, "mAP_s", "mAP_m", "mAP_l", *_RECALLS, "AR_s", "AR_m", "AR_l")
_OF_KEYPOINTS = (*_PRECISIONS, "mAP_m", "mAP_l", "AR", "AR_50", "AR_75", "AR_m", "AR_l")
_BY_LENGTH = {len(names): names for names in (_OF_BOXES, _OF_KEYPOINTS)}


def is_summary(name: str, value: Any) -> bool:
    """Return whether a value of this name is the summary of a COCO evaluation."""
    return type(value) is list and len(value) in _BY_LENGTH and _NAME.search(name) is not None


def of_summary(name: str, values: list[Any]) -> Iterator[tuple[str, Any]]:
    """Yield the numbers of a summary, each with its name below that of the list."""
    for of_number, value in zip(_BY_LENGTH[len(values)], values, strict=True):
        yield f"{name}/{of_number}", value
