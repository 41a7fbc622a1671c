"""Judges an archive of runs, part by part, and keeps what was found."""

import logging
from collections.abc import Callable, Sequence
from functools import partial
from importlib.metadata import version
from pathlib import Path
from tempfile import TemporaryFile, gettempdir

import msgspec

from sentinel.archives.engine import Engine
from sentinel.archives.isolating import isolated
from sentinel.archives.judging import Judge
from sentinel.archives.origin import ArchiveSource
from sentinel.archives.parts import Part, parts
from sentinel.archives.results import Results
from sentinel.archives.tree import Tree
from sentinel.common.errors import SentinelError
from sentinel.config.file import Config
from sentinel.detectors.runtime.worse_than_siblings import RULE
from sentinel.plugins import packages_with_plugins
from sentinel.sources.discovery import common_path
from sentinel.sources.location import Location, Url

_log = logging.getLogger(__name__)


class JudgedParts(msgspec.Struct):
    """How much of an archive, or of a shard, is judged: ``reused`` parts had been before.

    ``damaged`` files are those of parts that had been, too, and are judged again. ``runs`` and ``failed`` are
    counted in the parts that are judged now.
    """

    parts: int = 0
    reused: int = 0
    damaged: int = 0
    completed: int = 0  # of the parts that were not reused
    runs: int = 0
    failed: int = 0  # of the runs, and of what could not be searched for runs


def judge_archive(
    config: Config,
    archive_results: Results,
    engine: Engine,
    now: float,
    progress: Callable[[JudgedParts], None],
    *,
    retry_failed: bool = False,
    compare: bool = False,
) -> JudgedParts:
    """Judge the parts of what lies at ``config.paths`` whose results are not there yet.

    A part is judged again if its results are not whole, if a file of it, the detectors' configuration or the
    version of sentinel changed, and with ``retry_failed`` if it holds a run that could not be judged before.
    ``compare`` keeps what a comparison of runs needs, too. ``progress`` is called after each part. Raises
    SentinelError if no path exists, or if the results are of another path, too.
    """
    origin = origin_of(config.paths)
    paths = [str(path.absolute() if isinstance(path, Path) else path) for path in config.paths]
    judgement = JudgedParts()
    keys = list[str]()
    read_issues = list[str]()
    with archive_results.writing(), TemporaryFile() as backlog:  # on disk, so that memory stays small
        archive_results.require_paths(paths)
        for part in parts(origin.listed(read_issues), _salt(config, compare)):
            if not archive_results.shard.holds(
                part.folders[0].path
            ):  # its first directory decides, which hardly moves
                continue
            keys.append(part.key)
            judgement.parts += 1
            if archive_results.has(part.key) and not (retry_failed and archive_results.failures(part.key)):
                judgement.reused += 1
                continue
            for file in archive_results.damaged(part.key):
                judgement.damaged += 1
                _log.warning("%s: damaged; its part is judged again", file)
            _on_disk(partial(backlog.write, msgspec.json.encode(part) + b"\n"))
        progress(judgement)
        judge = Judge(origin, config.model_copy(update={"sinks": []}), now, compare)
        _on_disk(partial(backlog.seek, 0))
        parts_to_judge = (msgspec.json.decode(line, type=Part) for line in backlog)
        for part, archived_runs in isolated(engine, judge, parts_to_judge):
            failures = archive_results.write(part.key, archived_runs)
            judgement.completed += 1
            judgement.runs += len(archived_runs) - failures
            judgement.failed += failures
            progress(judgement)
        archive_results.finish(keys, read_issues, config.detectors.get(RULE, {}), paths)
    return judgement


def _on_disk(write: Callable[[], object]) -> None:
    """Write to the list of parts. Raises SentinelError if the disk is full."""
    try:
        write()
    except OSError as error:
        raise SentinelError(f"{gettempdir()}: the list of parts cannot be kept: {error.strerror}") from None


def origin_of(locations: Sequence[Location]) -> ArchiveSource:
    """Return the origin of what lies at some places.

    Raises SentinelError for a mixture that no part can hold.
    """
    paths = [location for location in locations if isinstance(location, Path)]
    if len(paths) == len(locations):
        return Tree(tuple(paths))
    if len(locations) > 1:
        raise SentinelError("--out judges paths, or one address; give each address a directory of its own")
    from sentinel.archives.bucket import SCHEMES, Bucket

    [url] = locations
    if not isinstance(url, Url) or url.scheme not in SCHEMES:
        schemes = " and ".join(f"{scheme}://" for scheme in SCHEMES)
        raise SentinelError(f"{url}: --out judges paths, and addresses of {schemes}")
    return Bucket(url)


def _salt(config: Config, compare: bool) -> str:
    """Return what changes the results beside the logs."""
    rules = [repr(rule) for rule in config.rules]
    base = str(common_path(config.paths))  # the names of the runs depend on it
    releases = (version("training-sentinel"), *packages_with_plugins())
    return repr((*releases, base, config.detectors, config.signals, config.forms, rules, compare))
