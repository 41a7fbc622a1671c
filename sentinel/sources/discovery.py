"""Finds the runs at a path, which is a file or a tree of directories, or behind an address.

A run is known by its real path, so a run that is reached twice, such as through W&B's ``latest-run``, counts
once and has one name wherever the search began.
"""

import os
import tempfile
from collections.abc import Callable, Iterable, Sequence
from functools import cache, partial
from itertools import starmap
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from sentinel.common.errors import SentinelError, did_you_mean
from sentinel.common.processor_budget import Budget, unlimited
from sentinel.sources.base import ReadIssue, Run
from sentinel.sources.general import logs
from sentinel.sources.location import Location, Url, fixed_part
from sentinel.sources.readers.files import can_exist, real_path
from sentinel.sources.readers.sniffing import why_no_log
from sentinel.sources.registry import Find, formats, remotes
from sentinel.sources.walking import Files, Walk

if TYPE_CHECKING:
    from sentinel.sources.console.line_forms import LineForm

_Found = tuple[Sequence[Run], Sequence[ReadIssue]]

_CONSOLE = "console"
_ABOVE_RUNS = 3  # directories above that of a run
_BELOW_RUNS = 3  # directories below that of a run, which hold its files and no logs of no format
_MAX_UNREAD = 5  # names in a line
_MAX_NAME_CHARACTERS = 60  # characters of a name that is refused


class Discovery(msgspec.Struct, frozen=True):
    """What lies under some paths. Runs are sorted by path, then format."""

    runs: Sequence[Run]
    read_issues: Sequence[ReadIssue]  # each search repeats them until the trouble is gone
    missing: Sequence[Location]  # paths that do not exist; they may appear later, or are mistyped
    any_there: bool  # whether another place exists
    unread: Sequence[ReadIssue] = ()  # files that look like logs and hold no numbers that are understood

    def complained(self) -> Sequence[ReadIssue]:
        """Return the complaints, also about missing paths. Raises SentinelError if nothing else is there."""
        missing = [ReadIssue(path, "", "no such file or directory") for path in self.missing]
        if missing and not self.any_there:
            raise SentinelError(str(missing[0]))
        return [*missing, *self.read_issues]


def location(text: str) -> Location:
    """Return the path or the address that a person wrote.

    Raises ValueError for an invalid address.
    """
    url = Url.parse(text)
    if url is None:
        return Path(text)
    if url.scheme not in remotes():
        raise ValueError(f"{url.scheme}:// is unknown{did_you_mean(url.scheme, remotes())}")
    remotes()[url.scheme].check(url)
    return url


def locations_of(texts: Iterable[str]) -> list[Location]:
    """Return the paths and addresses that a person wrote. Raises SentinelError for an invalid address."""
    try:
        return [location(text) for text in texts]
    except ValueError as error:
        raise SentinelError(str(error)) from None


def discover(
    locations: Iterable[Location],
    copies: Path | None = None,
    are_over: bool = False,
    budget: Budget = unlimited,
    forms: Sequence["LineForm"] = (),
) -> Discovery:
    """Find all runs under the locations. Never raises an error.

    ``are_over`` says that no log is expected to grow, so that one of no format may be short. ``forms`` are
    forms of lines that a person named: a text that has one is a console.

    ``copies`` is a directory for what is copied from addresses. A later process goes on with these copies.
    ``budget`` limits what the search of one directory for one format may cost.
    """
    search = _Search(are_over, budget, tuple(forms))
    locations = [*locations]
    walk = Walk([location for location in locations if not isinstance(location, Url)])
    for url in (location for location in locations if isinstance(location, Url)):
        search.ask(url, copies or Path(_scratch().name))
    files = [*walk]
    search.read_issues += walk.read_issues
    search.visit(files, walk.named)
    return Discovery(
        search.whole(), search.read_issues, walk.missing, len(locations) > len(walk.missing), search.unread
    )


def runs_among(
    files: Sequence[Files], paths: Sequence[Path], forms: Sequence["LineForm"] = ()
) -> tuple[Sequence[Run], Sequence[ReadIssue]]:
    """Return the runs in some files of a walk and in files that a person named, sorted by path, then
    format.

    ``forms`` are forms of lines that a person named.
    """
    search = _Search(are_over=True, budget=unlimited, forms=tuple(forms))
    search.visit(files, paths)
    return search.whole(), search.read_issues


def unread_line(unread: Sequence[ReadIssue], more: str = "more ") -> str:
    """Return the line that names the files that look like logs and are not read; empty if there are none."""
    if not unread:
        return ""
    names = ", ".join(issue.path.name for issue in unread[:_MAX_UNREAD] if isinstance(issue.path, Path))
    ellipsis = ", ..." if len(unread) > _MAX_UNREAD else ""
    return f"{unread_count(len(unread), more)}: {names}{ellipsis}; `sentinel runs --unread` shows why"


def unread_count(number: int, more: str = "") -> str:
    """Return how many files look like logs and are not read."""
    files = f"{number} {more}files look like logs and hold"
    if number == 1:
        files = f"1 {more}file looks like a log and holds"
    return f"{files} no numbers that sentinel understands"


def nothing_read(paths: Iterable[Location], unread: Sequence[ReadIssue]) -> str:
    """Return the message that no log under the paths can be read."""
    text = f"{', '.join(map(str, paths))}: no log that sentinel can read"
    return f"{text}\n{unread_line(unread, more='')}" if unread else text


def common_path(roots: Iterable[Location]) -> Path:
    """Return the longest path that contains all roots that are paths; the root itself if there is only one.

    A glob counts as the part before its first wildcard.
    """
    real = [real_path(fixed_part(root)) for root in roots if isinstance(root, Path)]
    return Path(os.path.commonpath(real)) if real else Path("/")


def run_name(run: Run, base: Path) -> str:
    """Return a short name, unique among the runs under the roots unless several formats share a directory.

    The name is the path relative to ``base``, which is the common path of the roots. A run that is the only
    root has the last part of its path as its name. The name of a run behind an address is the address without
    its scheme.
    """
    if isinstance(run.path, Url):
        return "/".join(run.path.parts)
    path = str(run.path)
    above = f"{base}/".replace("//", "/")
    return run.path.name if run.path == base else path.removeprefix(above)


class _Search:
    def __init__(self, are_over: bool, budget: Budget, forms: tuple["LineForm", ...] = ()) -> None:
        self._are_over = are_over
        self._forms = forms
        self._budget = budget
        self.runs: dict[str, Run] = {}
        self.read_issues: list[ReadIssue] = []
        self.unread: list[ReadIssue] = []

    def ask(self, url: Url, copies: Path) -> None:
        self._add_found_runs(_found(url, lambda: remotes()[url.scheme].search(url, copies)))

    def visit(self, files: Sequence[Files], paths: Sequence[Path]) -> None:
        finds = [self._limited(each.find) for each in formats().values()]
        without: list[Files] = []
        for listing, scanned in zip(files, starmap(partial(_scan, finds), files), strict=True):
            if self._forms and all(run.format == _CONSOLE for run in scanned[0]):
                run_of_form = _found(listing[0], partial(logs.of_forms, *listing, self._forms))
                scanned = ([*scanned[0], *run_of_form[0]], [*scanned[1], *run_of_form[1]])
            self._add_found_runs(scanned)
            others = logs.others(listing[1], scanned[0]) if any(scanned) else logs.candidates(listing[1])
            if others:
                without.append((listing[0], others) if any(scanned) else listing)
        without = _apart(without, frozenset(run.local for run in self.runs.values() if run.local))
        of_no_format = partial(_of_no_format, self._limited(partial(logs.find, are_over=self._are_over)))
        for scanned, unread in map(of_no_format, without):
            self._add_found_runs(scanned)
            self.unread += unread
        for path in paths:
            run_of_form = _found(path, partial(logs.of_forms, path.parent, [path.name], self._forms))
            self._add_found_runs(
                run_of_form if self._forms and any(run_of_form) else _named_runs(finds, path, self._are_over)
            )
        logs_here = frozenset(run.local for run in self.runs.values() if run.local)
        for directory, names in files:
            self.read_issues += logs.denied(directory, names, logs_here)

    def _limited(self, find: Find) -> Find:
        return lambda directory, names: self._budget(lambda: [*find(directory, names)])

    def whole(self) -> list[Run]:
        """Return the runs that are no part of another one."""
        runs = (run for run in self.runs.values() if f"{run.format}:{run.part_of}" not in self.runs)
        return sorted(runs, key=lambda run: (run.path.parts, run.format))

    def _add_found_runs(self, scanned: _Found) -> None:
        runs, complaints = scanned
        self.read_issues += complaints
        for run in runs:
            if run.local is None or can_exist(run.local):
                self.runs[run.id] = run
            else:
                name = repr(run.local.name[:_MAX_NAME_CHARACTERS])
                problem = f"no file can be called {name}, so this run was skipped"
                self.read_issues.append(ReadIssue(run.local.parent, "", problem))


def _named_runs(finds: Iterable[Find], path: Path, is_over: bool) -> _Found:
    """Return the runs in a file that a person named. If its name is no log's name, its content decides."""
    runs, complaints = _scan(finds, path.parent, [path.name])
    if runs or complaints:
        return runs, complaints
    readers = [each.run_in for each in formats().values()]
    runs, complaints = _found(path, lambda: filter(None, (run_in(path) for run_in in readers)))
    if not runs and not complaints:
        runs, complaints = _found(path, lambda: filter(None, [logs.run_in(path, is_over)]))
    if not runs and not complaints:
        complaints = [ReadIssue(path, "", why_no_log(path))]
    return runs[:1], complaints


def _apart(files: Sequence[Files], runs: frozenset[Path]) -> list[Files]:
    """Return the files that lie neither below the directory of a run nor a few directories above it.

    What lies there belongs to the run, or tells of the same training.
    """
    above = {parent for run in runs if not run.suffix for parent in [*run.parents][:_ABOVE_RUNS]}
    return [
        (directory, names)
        for directory, names in files
        if directory not in above and runs.isdisjoint((directory, *[*directory.parents][:_BELOW_RUNS]))
    ]


def _of_no_format(find: Find, files: Files) -> tuple[_Found, Sequence[ReadIssue]]:
    """Return the runs among some files of a directory in which no format finds one: their content decides.

    If there are none, also the files that look like logs.
    """
    directory, names = files
    scanned = _found(directory, partial(find, directory, names))
    return scanned, [] if any(scanned) else logs.unread(directory, names)


def _scan(finds: Iterable[Find], directory: Path, names: Sequence[str]) -> _Found:
    """Return the runs of all formats among some files of one directory."""
    results = [each for find in finds for each in _found_by(find, directory, names)]
    runs = [run for runs, _ in results for run in runs]
    return runs, [problem for _, problems in results for problem in problems]


def _found_by(find: Find, directory: Path, names: Sequence[str]) -> list[_Found]:
    """Return the runs of one format. A file that makes the search fail costs no other file its run."""
    runs, complaints = _found(directory, partial(find, directory, names))
    if complaints and len(names) > 1:
        return [_found(directory / name, partial(find, directory, [name])) for name in names]
    return [(runs, complaints)]


def _found(location: Location, runs: Callable[[], Iterable[Run]]) -> _Found:
    try:
        return list(runs()), []
    except OSError as error:
        return [], [ReadIssue(location, "", f"cannot be read ({error.strerror or error})")]
    except Exception as error:  # noqa: BLE001  our own mistake must not cost other runs
        return [], [ReadIssue(location, "", f"cannot be searched ({type(error).__name__}); please report it")]


@cache
def _scratch() -> "tempfile.TemporaryDirectory[str]":
    """Return a directory that is gone when the process ends."""
    return tempfile.TemporaryDirectory(prefix="sentinel-")
