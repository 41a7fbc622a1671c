"""A watch of logs whose permissions change, and of those of another user's training."""

import pytest

from tests.permissions import needs_permissions, unprivileged

pytestmark = [pytest.mark.long, needs_permissions]

WATCH = """
import json, os, subprocess, sys
from pathlib import Path
from sentinel.storage.store import Store
from tests.watch.test_watcher import House
ENDS = ("run-crashed", "run-preempted", "run-finished", "stream-stall", "ended-or-stuck", "log-restarted")
house = House(Path(sys.argv[1]))
run = house.runs / "run"
run.mkdir()
log = run / "metrics.jsonl"
def grow(steps, loss=None):  # it falls, since a loss that stands still is a finding
    with log.open("a") as file:
        for step in steps:
            row = {"loss": 1 / (1 + step) if loss is None else loss, "accuracy": step / (1 + step)}
            print(json.dumps({"step": step, **row, "time": house.clock.now()}), file=file)
def look(hours=0.01, of=("non-finite-metric",)):
    return house.look(watcher, hours, of)
def incidents():
    with Store(house.state) as store:
        return sorted(one.detector for one in store.incidents())
def points():
    return [log.metadata.points for log in watcher.logs()]
"""
FIRST = ["firing: first-notification"]


def watched(code, place):
    return unprivileged(f"{WATCH}\n{code}", place)


def test_a_log_that_becomes_readable_is_judged_from_its_first_row(tmp_path):
    """It does not grow any more, so nothing but its permissions changes."""
    before, after, points = watched(
        """
grow(range(50))
grow(range(50, 60), float("nan"))
log.chmod(0)
watcher = house.watch()
before = look()
log.chmod(0o600)
print(json.dumps([before, [*look(1), *look(1)], points()]))
""",
        tmp_path,
    )
    assert before == []
    assert after[:1] == FIRST
    assert points == [120]


@pytest.mark.parametrize("closed", ["log", "run", "house.runs"])
def test_a_log_that_is_closed_for_a_while_is_neither_gone_nor_begun_anew(tmp_path, closed):
    says, early, after, points = watched(
        f"""
grow(range(50))
watcher = house.watch()
look()
mode = {closed}.stat().st_mode
writer = log.open("a")
{closed}.chmod(0)
says = [*look(), *look(), *look(0.1)]
early = incidents()
writer.writelines(json.dumps({{"step": step, "loss": float("nan")}}) + "\\n" for step in range(50, 60))
writer.close()
says += look()
{closed}.chmod(mode)
print(json.dumps([says, early, [*look(0.02), *look(0.02)], points()]))
""",
        tmp_path,
    )
    assert says == []
    assert early in ([], ["judging-stopped"]), "which is what a person has to know"
    assert after[:1] == FIRST
    assert points == [110]


def test_a_log_that_may_not_be_asked_about_is_not_said_to_be_gone(tmp_path):
    summaries, status = watched(
        """
grow(range(50))
watcher = house.watch()
look()
run.chmod(0)
for _ in range(12): look(1)
with Store(house.state) as store:
    summaries = {one.detector: one.summary for one in store.incidents()}
from sentinel.runs.state import silent_seconds
print(json.dumps([summaries, silent_seconds(log, house.clock.now() - 60, house.clock.now())]))
run.chmod(0o700)
""",
        tmp_path,
    )
    assert not [text for text in summaries.values() if "gone" in text]
    assert "stream-stall" not in summaries, "nothing says that more should come"
    assert status == 60.0
