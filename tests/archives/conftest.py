import json
import shutil

import pytest

from sentinel.archives.archive import judge_archive
from sentinel.archives.index import Contents
from sentinel.archives.reducing import reduced
from sentinel.archives.results import Results
from sentinel.common.shard import WHOLE
from sentinel.config.file import Config
from sentinel.report import archive as report
from tests.cli.conftest import sentinel
from tests.tools.docs import ROOT

__all__ = ["sentinel"]

NOW = 1.8e9

SINKS = [
    {"type": "command", "name": "all", "command": ["true"], "include_preview": True},
    {"type": "command", "name": "worst", "command": ["true"], "min_severity": "critical"},
]


class InTurn:
    """An engine of this process."""

    def results(self, work, parts):
        for part in parts:
            yield part, work(part)


@pytest.fixture
def tree(tmp_path):
    """Logs of trainings: some fail, one has two logs, and one goes on where another stopped."""
    shutil.copytree(ROOT / "sample_logs", tmp_path / "tree")
    run = tmp_path / "tree" / "two-logs"
    run.mkdir()
    rows = [{"step": i, "loss": 2.0 - i / 100, "acc": i / 200} for i in range(60)]
    rows += [{"step": i, "loss": float("nan"), "acc": 0.1} for i in range(60, 90)]
    (run / "metrics.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    text = "".join(",".join(map(str, row.values())) + "\n" for row in rows)
    (run / "metrics.csv").write_text(f"step,loss,acc\n{text}")
    parts = tmp_path / "tree" / "in-two-parts"
    parts.mkdir()
    for name, first, last in (("a", 0, 100), ("b", 100, 200)):
        later = [{"step": i, "_timestamp": 1.7e9 + i, "loss": 2.0 - i / 400} for i in range(first, last)]
        (parts / f"{name}.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in later))
    return tmp_path / "tree"


def config(*paths):
    return Config.model_validate({"paths": [str(path) for path in paths], "sinks": SINKS})


def archived(out, path, engine=None, **options):
    """The results in a directory, and how much was judged."""
    results = Results(out, options.pop("owners", None), options.pop("shard", WHOLE))
    settings = options.pop("settings", None) or config(path)
    judged = judge_archive(settings, results, engine or InTurn(), NOW, lambda _: None, **options)
    return results, judged


def whole(results):
    policies = config("/").policies
    return reduced(results, policies)


def as_json(body):
    return json.loads(json.dumps(body))


def reported(results):
    """The report of an archive, as JSON."""
    return json.loads("".join(report.pieces(whole(results))))


def records(results):
    """The records of all runs that were judged, by path."""
    contents = Contents.from_results(results)
    return [contents.record(number) for number in contents.numbers()]
