"""A log that grows in twelve parts under a watch has the incidents of a replay and tells as it does."""

import math
import threading
import time
from pathlib import Path

import pytest

from sentinel.config.file import Config
from sentinel.replays.replaying import replay
from sentinel.sinks.delivery import Delivery
from sentinel.storage.store import Store
from sentinel.watch.systemd import ServiceManager
from sentinel.watch.watcher import Watcher
from tests.manual_clock import ManualClock
from tests.sources.wandb.log_writer import WandbLog

pytestmark = pytest.mark.long

HERE = Path(__file__).parent
LOGS = [
    *(
        HERE.parent / "sample_logs" / name
        for name in ("kl-blowup", "loss-scale-collapse", "non-finite-metric")
    ),
    *(HERE / "frameworks" / name for name in ("catboost", "deepspeed", "fairseq", "hf-trainer", "keras")),
    *(HERE / "frameworks" / name for name in ("litgpt", "mmengine", "ms-swift", "torchtitan")),
]
PARTS = 12
OF_THE_CLOCK = ("stream-stall", "ended-or-stuck")
BEGINNINGS = ("firing", "escalated")


def grow(source: Path, target: Path, part: int, late: int = 0) -> None:
    """Bring the copy of each file to this part of it; records of W&B come ``late`` parts later."""
    ours = ("README.md", "expected.toml", "train.py")
    for file in sorted(path for path in source.rglob("*") if path.is_file() and path.name not in ours):
        copy = target / file.relative_to(source)
        content = file.read_bytes()
        copy.parent.mkdir(parents=True, exist_ok=True)
        with copy.open("ab") as log:
            behind = late if file.suffix == ".wandb" and part < PARTS else 0
            log.write(content[copy.stat().st_size : len(content) * max(0, part - behind) // PARTS])


def watched(logs, place, late=0):
    """The incidents by id, and what was decided about them: incident, event and reason."""
    clock = ManualClock(time.time())
    copy = place / "runs"
    copy.mkdir()
    config = Config(paths=[str(copy)], sinks=[{"type": "terminal"}])
    with Store(place / "state") as store:
        delivery = Delivery(place / "state", [], clock)
        watcher = Watcher(config, store, delivery, clock, ServiceManager())
        for part in range(1, PARTS + 1):
            grow(logs, copy, part, late)
            clock.advance(10)
            watcher.round(None, threading.Event())
        clock.advance(200_000)  # nothing more is expected
        watcher.round(None, threading.Event())
        told = {(one.incident, one.event, one.reason) for one in store.decisions(100_000)}
        return {one.id: one for one in store.incidents() if one.detector not in OF_THE_CLOCK}, told


@pytest.mark.parametrize("logs", LOGS, ids=lambda path: path.name)
def test_twelve_parts_tell_what_a_replay_tells(tmp_path, logs):
    agree(logs, tmp_path)


def test_a_last_line_without_a_line_break_is_judged_at_the_end_alike(tmp_path):
    """The detector holds nothing back: the NaN stands in the last line alone."""
    logs = tmp_path / "logs"
    for name in ("printed", "table"):
        (logs / name).mkdir(parents=True)
    lines = [f"step {step}: loss {3 / step:.4f}, lr 0.001" for step in range(1, 61)]
    (logs / "printed" / "train.log").write_text("\n".join([*lines, "step 61: loss nan, lr 0.001"]))
    table = ["step,loss,lr", *(f"{step},{3 / step:.4f},0.001" for step in range(1, 61))]
    (logs / "table" / "metrics.csv").write_text("\n".join([*table, "61,nan,0.001"]))
    found = agree(logs, tmp_path)
    assert {(one.detector, one.fired_step) for one in found.values()} == {("non-finite-metric", 61)}
    assert len(found) == 2


@pytest.mark.parametrize("late", [1, 4, 11])
def test_a_record_that_lags_behind_what_was_printed_is_told_with_it(tmp_path, late):
    """wandb writes its record in blocks, after the training printed the same."""
    record = tmp_path / "logs" / "wandb" / "run-20260101_000000-abc"
    (record / "files").mkdir(parents=True)
    log = WandbLog(record / "run-abc.wandb")
    lines = []
    for step in range(600):
        loss = math.nan if step > 400 else 3 / (step + 1)
        log.history({"_step": step, "loss": loss, "_timestamp": 1.7e9 + step})
        lines.append(f"step {step}: loss {loss:.6g}\n")
    (record / "files" / "output.log").write_text("".join(lines))
    found = agree(tmp_path / "logs", tmp_path, late)
    assert {(one.detector, one.fired_step) for one in found.values()} == {("non-finite-metric", 401)}
    assert len(found) == 2


def agree(logs, tmp_path, late=0):
    """The incidents that a watch and a replay both find and tell of."""
    live, told = watched(logs, tmp_path, late)
    done = replay([tmp_path / "runs"], Config(sinks=[{"type": "terminal"}]), lambda *_: None).runs
    found = {id_: one for run in done for id_, one in run.incidents.items()}
    assert {id_: (i.detector, i.severity, i.onset_step, i.fired_step) for id_, i in live.items()} == {
        id_: (i.detector, i.severity, i.onset_step, i.fired_step) for id_, i in found.items()
    }
    outcomes = [one for run in done for of_incident in run.notifications.values() for one in of_incident]
    replayed = {(one.incident.id, one.decision.event, one.decision.reason) for one in outcomes}
    assert {one for one in told if one[0] in live and one[1] in BEGINNINGS} == {
        one for one in replayed if one[1] in BEGINNINGS
    }
    return found
