"""Meters of an evaluation, as PyTorch's examples print them: a value, and the mean so far in parentheses.

    Test: [ 0/79]  Loss 1.3 (1.3)  Acc@1 19.0 (19.0)
    Test: [78/79]  Loss 1.1 (1.2)  Acc@1 25.0 (24.8)
     * Acc@1 24.8 Acc@5 80.0

The batches are often sorted by class, so only the mean of the last one says how the evaluation ended. A line
with a star sums it up.
"""

import re

from sentinel.common.lazy_pattern import lazy_pattern

_NUMBER = r"[-+]?(?:\d{1,20}(?:\.\d{0,20})?(?:e[-+]?\d{1,3})?|nan|inf)"

_BATCH = lazy_pattern(
    r"(?<!\w)(?P<part>val|valid|validate|validation|test|eval|evaluation)\s{0,3}:?\s{1,3}"
    r"\[\s{0,9}(?P<at>\d{1,9})\s{0,3}/\s{0,9}(?P<batches>\d{1,9})\s{0,3}\]",
    re.IGNORECASE,
)
_ETA = lazy_pattern(r"^\s{0,9}eta:\s{1,3}(?:\d{1,5} days?,\s)?[\d:]{1,12}\s", re.IGNORECASE)
_METER = lazy_pattern(
    rf"(?<![\d.]){_NUMBER}(?P<unit>%?)\s{{0,3}}\(\s{{0,9}}(?P<mean>{_NUMBER})%?\s{{0,3}}\)", re.IGNORECASE
)
_SUM = lazy_pattern(r"(?:^|\s)\*\s{1,9}(?=[A-Za-z])")


class Meters:
    """The evaluation that a console shows. ``part`` is the part of the data, empty before the first one."""

    def __init__(self, part: str = "") -> None:
        self.part = part

    def read(self, line: str) -> str | None:
        """Return a line as it says how an evaluation ended; None for a batch within it."""
        if self.part and "*" in line and (star := _SUM.search(line)) is not None:
            return f"{line[: star.start()]} {self.part} {line[star.end() :]}"
        if "[" not in line or (batch := _BATCH.search(line)) is None:
            return line
        meters = line[batch.end() :]
        means = _METER.sub(r"\g<mean>\g<unit>", meters)
        if means == meters:
            return line
        self.part = batch["part"]
        if int(batch["at"]) + 1 < int(batch["batches"]):
            return None
        return f"{line[: batch.start()]}{self.part}: {_ETA.sub('', means)}"
