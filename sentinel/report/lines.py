"""Lines of plain text for a terminal, a pipe or a file."""

import shutil
import sys
import textwrap
from collections.abc import Iterable, Iterator


def print_lines(report_lines: Iterable[tuple[int, str]]) -> None:
    """Print lines, each with its indent, folded to the width of the terminal.

    Folding never breaks a word, so a path can be copied. Nothing is folded where there is no terminal.
    """
    width = terminal_width()
    sys.stdout.writelines(
        f"{line}\n" for indent, text in report_lines for line in _folded(text, indent, width)
    )


def terminal_width() -> int | None:
    """Return the columns of the terminal; None where nothing is folded because there is none."""
    return shutil.get_terminal_size().columns if sys.stdout.isatty() else None


def _folded(line_text: str, indent: int, width: int | None) -> Iterator[str]:
    margin = " " * indent
    if width is None or len(line_text) + indent <= width:
        yield margin + line_text if line_text else ""
        return
    yield from textwrap.wrap(
        line_text,
        max(width, indent + 40),
        initial_indent=margin,
        subsequent_indent=" " * (indent + 2),
        break_long_words=False,
        break_on_hyphens=False,
    )
