"""What a program prints before it gives up, beside a traceback."""

import re

from sentinel.common.lazy_pattern import lazy_pattern

FAILED = lazy_pattern(
    r"\b(?:(?:pre-?)?training|fine-?tuning|experiment|phase)\b[^:]{0,40}\b(?:failed|crashed|aborted)\b"
    r"|\b(?:error|exception)\b (?:occurred )?(?:during|in|while) (?:the )?(?:model )?"
    r"(?:(?:pre-?)?training|fine-?tuning)\b"
    r"|\b(?:fatal|unhandled|uncaught)\b",
    re.IGNORECASE,
)
"""What a logger says of an exception that ends the training, though the program catches it."""

_MAX_LINE = 500  # characters that are read
_LOGGED_ERROR = lazy_pattern(r"\b(?:ERROR|CRITICAL)\b")
_USAGE_ERROR = lazy_pattern(r"[\w./-]{1,80}\.py: error: \S")
_EXIT_CODE = lazy_pattern(
    r"(?:\[[^\]]{1,40}\] ?){0,2}\[ERROR\] \[launch\.py:\d{1,5}:sigkill_handler\]"  # DeepSpeed's launcher
    r"|Process finished with exit code (?!(?:0|-1|130|143)\b)-?\d"  # PyCharm, unless a person stopped it
)
"""What a launcher or an editor prints of a program that failed."""


def says_why_it_ends(line: str) -> bool:
    """Return whether a line, if nothing follows, ends a training: a logger says that it failed, argparse
    that an argument is wrong, or what launched the program that it exited with an error.
    """
    failed = _LOGGED_ERROR.search(line, 0, _MAX_LINE) and FAILED.search(line, 0, _MAX_LINE)
    is_last = any(words.match(line, 0, _MAX_LINE) for words in (_USAGE_ERROR, _EXIT_CODE))
    return bool(failed) or is_last
