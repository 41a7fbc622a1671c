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
_FAILED_PROGRAM = lazy_pattern(
    r"(?:\[[^\]]{1,40}\] ?){0,2}\[ERROR\] \[launch\.py:\d{1,5}:sigkill_handler\]"  # DeepSpeed's launcher
    r"|Process finished with exit code (?!(?:0|-1|130|143)\b)-?\d"  # PyCharm
    r"|srun: error: .{1,200}: (?:Exited with exit code (?!(?:130|143)\b)[1-9]|Segmentation fault)"
    r"|(?:.{0,200}\] ?)?make(?:\[\d{1,3}\])?: \*\*\* \[.{1,100}\] Error (?!(?:130|143)\b)\d"
    r"|ERROR conda\.cli\.main_run:execute\(\d{1,5}\): `conda run .{1,400}` failed\."
    r"|(?:.{1,120}: line \d{1,6}: {1,4}\d{1,9} )?"
    r"(?:Segmentation fault|Bus error|Aborted|Illegal instruction|Floating point exception)"
    r" *(?:\(core dumped\)|$)"  # a shell
    r"|\S{1,200}: can't open file '"  # CPython
)
"""What the one who launched a program prints if it failed, unless a person ended it."""


def says_why_it_ends(line: str) -> bool:
    """Return whether a line, if nothing follows, ends a training: a logger says that it failed, argparse
    that an argument is wrong, or what launched the program that this failed.
    """
    failed = _LOGGED_ERROR.search(line, 0, _MAX_LINE) and FAILED.search(line, 0, _MAX_LINE)
    refused = _USAGE_ERROR.match(line, 0, _MAX_LINE) or _FAILED_PROGRAM.match(line, 0, _MAX_LINE)
    return bool(failed or refused)
