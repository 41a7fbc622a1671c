"""Judges runs of an archive once more with a detector stricter."""

from collections.abc import Iterator, Sequence
from glob import escape

from sentinel.config.file import Config
from sentinel.replays.archived import Stricter, Telling
from sentinel.replays.calibrating import Judge
from sentinel.replays.replaying import replay_in_parts
from sentinel.runs.log import RunOverview
from sentinel.sources.places import Place


def with_factors(paths: Sequence[Place], config: Config) -> Judge:
    """Judges named runs below some paths. Their results are kept nowhere, so no others can be mixed with
    them.
    """

    def judge(change: Stricter, names: Sequence[str]) -> Iterator[tuple[RunOverview, Telling]]:
        table = {**config.detectors.get(change.detector, {}), "stricter": change.factor}
        stricter = config.model_copy(update={"detectors": {**config.detectors, change.detector: table}})
        globs = [*map(escape, names)]
        for part in replay_in_parts(paths, stricter, lambda *_: None, names=globs):
            yield from ((run.seen, run.told) for run in part.runs if run.seen.name in names)

    return judge
