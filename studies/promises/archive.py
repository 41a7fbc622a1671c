"""An archive of labelled logs as `sentinel calibrate` sees it."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from sentinel.calibration.page_statistics import Pages
from sentinel.calibration.thresholds import judge_stricter
from sentinel.config.file import Config
from sentinel.replays.replaying import replay_in_parts
from sentinel.replays.strictness import with_factors
from studies.strangers.labels import read


@dataclass(frozen=True)
class Archive:
    """Labelled logs: those that are healthy and the others, and the repository of each by its name."""

    pages: Pages
    repositories: Mapping[str, str]


def judged(folder: Path) -> Archive:
    """Judge the labelled logs below a folder. A log belongs to the deepest label above it."""
    labels = {label.path: label for label in read(folder)}
    pages = Pages()
    repositories = {}
    config = Config.model_construct()
    for part in replay_in_parts([folder], config, lambda *_: None):
        for run in part.runs:
            path = Path(str(run.run_pipeline.log.run.path)).relative_to(folder)
            label = next((labels[str(at)] for at in (path, *path.parents) if str(at) in labels), None)
            if label is not None and label.healthy is not None:
                repositories[run.run_pipeline.log.name] = label.repository
                pages.add(run.seen, run.notifications, () if label.healthy else ["*"], {})
    judge_stricter(pages, with_factors([folder], config))
    return Archive(pages, repositories)
