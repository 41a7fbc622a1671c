"""Real runs of real libraries, whose incidents are known."""

import random
import tomllib
from pathlib import Path

import pytest

from sentinel.config.file import Config
from sentinel.detectors.discovery import all_detectors
from sentinel.pipeline import Pipeline
from sentinel.replays.replaying import replay
from sentinel.sources.discovery import discover, run_name

SAMPLES = Path(__file__).parents[1] / "sample_logs"
EXPECTED = {file.parent.name: tomllib.loads(file.read_text()) for file in SAMPLES.glob("*/expected.toml")}

every_sample = pytest.mark.parametrize("name", sorted(EXPECTED))


def read(path):
    (run,) = replay([path], Config(), lambda *_: None).runs
    return run


def log_of(name):
    """The one log file of a sample, beside what we wrote about it."""
    (log,) = (file for file in (SAMPLES / name).iterdir() if file.name not in ("README.md", "expected.toml"))
    return log


@pytest.mark.slow  # long logs
@every_sample
def test_replay_finds_what_went_wrong_and_nothing_else(name):
    run = read(SAMPLES / name)
    assert not run.read_issues
    wanted = sorted(EXPECTED[name].get("incident", []), key=lambda i: (i["detector"], i["fired_step"]))
    found = sorted(run.incidents.values(), key=lambda i: (i.detector, i.fired_step))
    assert [(i.detector, i.severity.label, i.inhibited_by is not None) for i in found] == [
        (w["detector"], w["severity"], w.get("explained", False)) for w in wanted
    ]
    for incident, (earliest, latest) in zip(found, (w["fired_step"] for w in wanted), strict=True):
        assert earliest <= incident.fired_step <= latest


@pytest.mark.long
@every_sample
def test_a_log_that_grows_gives_the_same(name, tmp_path):
    content = log_of(name).read_bytes()
    path = tmp_path / log_of(name).name
    path.touch()
    chance = random.Random(name)
    detectors = [detector for detector in all_detectors().values() if detector.enabled]
    pipeline = Pipeline(detectors, {}, {}, lambda *failure: pytest.fail(str(failure)))
    run_pipeline = None
    incidents = {}
    size = 0
    while size < len(content):
        size = min(len(content), size + chance.choice([7, 500, len(content) // 4]))
        with path.open("ab") as log:
            log.write(content[path.stat().st_size : size])
        if run_pipeline is None:
            (run,) = discover([tmp_path]).runs
            run_pipeline = pipeline.track(run, run_name(run, tmp_path))
        (advance,) = pipeline.advance([run_pipeline])
        assert not advance.ingested.read_issues
        incidents |= {change.incident.id: change.incident for change in advance.changes}
    (last,) = pipeline.finalize([run_pipeline])
    incidents |= {change.incident.id: change.incident for change in last.changes}
    incidents |= {incident.id: incident for incident in run_pipeline.incidents.open()}
    for grown, replayed in zip(incidents.values(), read(tmp_path).incidents.values(), strict=True):
        assert grown.replace(evidence={}) == replayed.replace(evidence={})
        assert grown.evidence == pytest.approx(replayed.evidence)  # sums may differ in their last bits


def test_each_named_detector_has_its_sample():
    broken = {name for name in EXPECTED if not name.startswith("healthy-")}
    assert broken <= set(all_detectors())
    for name in broken:
        assert name in [incident["detector"] for incident in EXPECTED[name]["incident"]]
    assert {name for name in EXPECTED if name.startswith("healthy-")} == {"healthy-supervised", "healthy-rl"}


def test_samples_are_small_and_say_what_they_are():
    index = (SAMPLES / "README.md").read_text()
    for name in EXPECTED:
        assert log_of(name).stat().st_size < 150_000
        assert f"({name}/README.md)" in index
        assert (SAMPLES / "make" / f"{name.replace('-', '_')}.py").is_file()
        assert (SAMPLES / name / "README.md").is_file()
