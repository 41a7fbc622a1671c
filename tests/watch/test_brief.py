"""A finding that fires and is over between two polls is told, as a replay says."""

import pytest

from sentinel.config.file import Config
from sentinel.replays.replaying import replay
from tests.watch.test_watcher import House

pytestmark = pytest.mark.long


def test_what_fired_and_was_over_between_two_polls_is_told_as_a_replay_says(tmp_path):
    house = House(tmp_path)
    watcher = house.watch()
    house.log("run", range(60), kl=0.1)
    house.look(watcher)
    house.clock.advance(400)
    house.log("run", range(60, 80), kl=9.0)
    house.log("run", range(80, 300), kl=0.1)
    messages = house.look(watcher)
    config = Config(sinks=[{"type": "terminal"}], signals={"kl": "kl"})
    (run,) = replay([house.runs], config, lambda *_: None).runs
    outcomes = [
        one
        for id_ in run.notifications
        for one in run.notifications[id_]
        if one.incident.detector == "kl-blowup"
    ]
    assert messages == [f"{one.decision.event}: {one.decision.reason}" for one in outcomes]
    assert messages[:1] == ["firing: first-notification"]
