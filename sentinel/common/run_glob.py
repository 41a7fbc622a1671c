"""What a pattern for runs matches: the same rule for a silence, a sink, an option and an agent.

A pattern is a glob for a run or for a directory above it: for the whole path, or for the end of it from some
directory on. ``runs/ablation-*`` and ``ablation-1`` both match ``/data/runs/ablation-1/metrics.jsonl``,
whatever the watch was given. `*` matches slashes, too.
"""

import glob
import os
from collections.abc import Iterable, Sequence

from sentinel.common.globs import bounded, matches
from sentinel.common.text import clean_text, counted

_MAX_RUN_NAMES = 3  # in a line


def fits(pattern: str, *names: str) -> bool:
    """Return whether a pattern matches one of the names and paths of a run, or a directory above it."""
    anywhere = f"*/{pattern.removeprefix('./').rstrip('/')}/*"
    return any(matches(f"/{name}/", anywhere) for name in names)


def any_fits(patterns: Iterable[str], *names: str) -> bool:
    """Return whether one of the patterns matches."""
    return any(fits(pattern, *names) for pattern in patterns)


def matched_runs(paths: Sequence[str]) -> str:
    """Return how many runs a pattern matches, and the first of them: "3 runs (a/1, a/2, ...)"."""
    names = [clean_text(path) for path in paths[:_MAX_RUN_NAMES]]
    others = ", ..." if len(paths) > _MAX_RUN_NAMES else ""
    return f"{counted(len(paths), 'run')} ({', '.join(names)}{others})"


def run_glob(pattern: str) -> str:
    """Return a pattern that a person wrote as one that matches the real paths of runs.

    A pattern that begins with ``/``, ``~`` or ``..`` is a path on this machine, and links in it are followed.
    Raises GlobTooLong for one that is longer than any path.
    """
    bounded(pattern)
    if not pattern.startswith(("/", "~", "..")):
        return pattern
    parts = os.path.abspath(os.path.expanduser(pattern)).split("/")  # noqa: PTH100, PTH111  no path: a glob
    fixed = next((number for number, part in enumerate(parts) if glob.has_magic(part)), len(parts))
    real = os.path.realpath("/".join(parts[:fixed]) or "/")
    return "/".join([real.rstrip("/"), *parts[fixed:]])
