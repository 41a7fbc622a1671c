"""Judges an archive of runs, part by part, and keeps what was found."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib.metadata import version

from sentinel.archives.engine import Engine, isolated
from sentinel.archives.judging import Judge
from sentinel.archives.parts import NamedRun, Part, Shard, parts
from sentinel.archives.results import Results
from sentinel.config.file import Config
from sentinel.sources.discovery import common_path, discover, run_name

_WHOLE = Shard()


@dataclass(frozen=True)
class JudgedCounts:
    """How much of an archive, or of a shard, was judged now, and how much had been judged before."""

    runs: int
    known: int


def judge_archive(
    config: Config,
    results: Results,
    engine: Engine,
    now: float,
    progress: Callable[[int, int], None],
    *,
    shard: Shard = _WHOLE,
    retry_failed: bool = False,
) -> JudgedCounts:
    """Judge the runs below ``config.paths`` whose results are not there yet.

    A run is judged again if a file beside it, the detectors' configuration or the version of sentinel
    changed, and with ``retry_failed`` if it could not be judged before. ``progress`` is called with the
    number of runs that are done and the number of all runs. Raises SentinelError if no path exists.
    """
    found = discover(config.paths)
    complaints = [str(one) for one in found.complained()]
    base = common_path(config.paths)
    named = (NamedRun(run, run_name(run, base)) for run in found.runs)
    mine = [part for part in parts(named, _salt(config)) if shard.holds(part)]
    results.begin()
    left = [
        part for part in mine if not results.has(part.key) or (retry_failed and results.failures(part.key))
    ]
    total, new = _runs(mine), _runs(left)
    done = total - new
    progress(done, total)
    for part, records in isolated(engine, Judge(config.model_copy(update={"sinks": []}), now), left):
        results.write(part.key, records)
        done += len(part.runs)
        progress(done, total)
    results.finish(shard, [part.key for part in mine], complaints)
    return JudgedCounts(new, total - new)


def _salt(config: Config) -> str:
    """What changes the verdicts beside the logs."""
    rules = [repr(rule) for rule in config.rules]
    return repr((version("training-sentinel"), config.detectors, config.signals, rules))


def _runs(found: Sequence[Part]) -> int:
    return sum(len(part.runs) for part in found)
