"""A watch over logs that are copied, replaced and rotated tells what a replay of the whole log tells."""

import json
import os
import shutil

import pytest

from sentinel.storage.states import state_of_config
from sentinel.storage.store import Store
from tests.sources.copying import WAYS, each_file, rename
from tests.sources.runs import files
from tests.sources.writers import WRITERS, ConsoleWriter, JsonlWriter

pytestmark = pytest.mark.long

CONFIG = 'paths = ["watched"]\n[signals]\n"my/odd/kl" = "kl"\n'
PARTS = 5
STEPS_A_PART = 15


@pytest.fixture
def house(sentinel, tmp_path):
    return House(sentinel, tmp_path)


class House:
    """A training that is written in parts, and a place where it is watched."""

    def __init__(self, sentinel, place):
        self.sentinel = sentinel
        self.state = state_of_config(place / "sentinel.toml")
        self.written = place / "written"
        self.watched = place / "watched"
        self.written.mkdir()
        self.watched.mkdir()
        (place / "sentinel.toml").write_text(CONFIG)

    def log(self, writer, part):
        for step in range(part * STEPS_A_PART, (part + 1) * STEPS_A_PART):
            writer.log(step, {"my/odd/kl": 0.01 if part < 2 else 3.0, "my/own": 1 / (1 + step)})

    def look(self):
        assert self.sentinel("watch", "--once").status == 0

    def told(self):
        with Store(self.state) as store:
            return [(i.attempt, i.detector, i.onset_step, i.fired_step) for i in store.incidents()]

    def replayed(self):
        ran = self.sentinel("replay", self.written, "--format", "json", "--config", "sentinel.toml")
        (run,) = json.loads(ran.out)["runs"]
        return [(run["attempts"], i["detector"], i["onset_step"], i["fired_step"]) for i in run["incidents"]]


@pytest.mark.parametrize(
    ("name", "renew"),
    [
        *(pytest.param(name, each_file(rename), id=name) for name in WRITERS),
        *(pytest.param("jsonl", *way.values, id=f"jsonl {way.id}", marks=way.marks) for way in WAYS),
    ],
)
def test_a_copy_that_is_renewed_tells_what_the_whole_log_tells(house, name, renew):
    writer = WRITERS[name]()
    writer.start(house.written)
    for part in range(PARTS):
        house.log(writer, part)
        renew(house.written, house.watched)
        house.look()
    writer.close()
    assert house.told() == house.replayed() != []
    assert {attempt for attempt, *_ in house.told()} == {1}


def create(path):
    """As logrotate's ``create``: the old file gets another name, and a new one its own."""
    path.rename(f"{path}.1")
    path.touch()


def copytruncate(path):
    """As logrotate's ``copytruncate``: the old file is copied and then emptied."""
    shutil.copy2(path, f"{path}.1")
    os.truncate(path, 0)


@pytest.mark.parametrize("rotate", [create, copytruncate])
@pytest.mark.parametrize("look_between", [True, False])
@pytest.mark.parametrize(
    "kind", [ConsoleWriter, JsonlWriter]
)  # what else has no header, and is only appended to
def test_a_log_that_is_rotated_tells_what_the_whole_log_tells(house, kind, rotate, look_between):
    whole = kind()
    rotated = kind()
    whole.start(house.written)
    rotated.start(house.watched)
    for part in range(PARTS):
        house.log(whole, part)
        house.log(rotated, part)
        house.look()
        if part % 2:
            rotate(rotated.path)
        if look_between:
            house.look()
    assert house.told() == house.replayed() != []
    assert len(files(house.watched)) > 1
