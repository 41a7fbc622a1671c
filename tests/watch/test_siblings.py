"""Runs under a real watch, on a clock that is moved, beside the runs that ended before them."""

import os

import pytest

from sentinel.config.file import Config
from sentinel.sinks.delivery import Delivery
from sentinel.storage.store import Store
from sentinel.watch.systemd import ServiceManager
from sentinel.watch.watcher import Watcher
from studies.fleets.faults import FAULTS, STRENGTHS
from studies.fleets.logs import Run, train
from studies.fleets.programs import PROGRAMS
from tests import fleets
from tests.manual_clock import ManualClock
from tests.watch.test_watcher import GOING

pytestmark = pytest.mark.long

NOW = 1_767_230_000.0
RULE = "worse-than-siblings"


class Tree:
    """Finished runs of a program, and one that grows under watches that follow one another on one clock."""

    def __init__(self, place):
        self.runs = place / "runs"
        self.state = place / "state"
        self.clock = ManualClock(NOW)

    def finished(self, count, **settings):
        """Add healthy runs that ended long ago."""
        for _ in range(count):
            seed = len([*self.runs.glob("*")])
            place = self.runs / f"run-{seed}"
            fleets.write(place, seed, **settings)
            self.age(place)

    def age(self, place=None):
        """Say that logs were last written long ago."""
        for log in (place or self.runs).rglob("metrics.jsonl"):
            os.utime(log, (NOW - 7 * 86400, NOW - 7 * 86400))

    def watch(self):
        store = Store(self.state)
        config = Config(paths=[str(self.runs)], state_dir=self.state)
        return Watcher(config, store, Delivery(self.state, [], self.clock), self.clock, ServiceManager())

    def grow(self, watcher, lines, every=10, name="growing"):
        """Write the lines of the growing run, some at a time. Gives the line at which it was found worse."""
        place = self.runs / name
        place.mkdir(exist_ok=True)
        at = None
        for begin in range(0, len(lines), every):
            with (place / "metrics.jsonl").open("a") as log:
                log.write("\n".join(lines[begin : begin + every]) + "\n")
            os.utime(place / "metrics.jsonl", (self.clock.now(), self.clock.now()))
            self.look(watcher)
            if at is None and self.found():
                at = begin + every
        return at

    def look(self, watcher, seconds=11.0):
        watcher.round(None, GOING)
        self.clock.advance(seconds)

    def found(self):
        with Store(self.state) as store:
            return [one for one in store.incidents() if one.detector == RULE]


@pytest.fixture
def tree(tmp_path):
    return Tree(tmp_path)


def test_a_run_that_becomes_worse_is_found_before_it_ends(tree):
    tree.finished(9)
    at = tree.grow(tree.watch(), [*fleets.lines(50, 0.3)])
    (incident,) = tree.found()
    assert 115 <= at <= 180
    assert incident.severity.label == "warning"
    assert incident.evidence["siblings"] == 9
    assert 94 <= incident.onset_step <= 113 < incident.fired_step <= at


def test_a_healthy_run_is_not_found_while_it_runs_nor_at_its_end(tree):
    tree.finished(9)
    watcher = tree.watch()
    assert tree.grow(watcher, [*fleets.lines(50)]) is None
    tree.look(watcher, 86400.0)
    tree.look(watcher)
    assert tree.found() == []


def test_a_watch_that_was_killed_goes_on_with_the_bands_and_the_course(tree):
    tree.finished(9)
    lines = [*fleets.lines(50, 0.3)]
    assert tree.grow(tree.watch(), lines[:100]) is None
    assert tree.grow(tree.watch(), lines[100:], every=60) is not None
    (incident,) = tree.found()
    assert 94 <= incident.onset_step <= 113


def test_three_siblings_are_info_and_two_say_nothing(tree):
    tree.finished(2)
    lines = [*fleets.lines(50, 3.0)]
    assert tree.grow(tree.watch(), lines[:150]) is None
    tree.finished(1)
    assert tree.grow(tree.watch(), lines[150:]) is not None
    assert [one.severity.label for one in tree.found()] == ["info"]


def test_a_sweep_is_silent(tree):
    tree.finished(4, depth=1)
    watcher = tree.watch()
    assert tree.grow(watcher, [*fleets.lines(50, 3.0, depth=4)]) is None
    tree.finished(4, depth=2)
    assert tree.grow(watcher, [*fleets.lines(51, 3.0, depth=4)], name="after") is None
    assert tree.grow(watcher, [*fleets.lines(52, 3.0, depth=2)], name="equal") is not None


def test_a_run_that_ends_well_is_a_sibling_of_the_next(tree):
    tree.finished(2)
    watcher = tree.watch()
    tree.grow(watcher, [*fleets.lines(50)], every=50)
    tree.look(watcher, 86400.0)
    tree.look(watcher)
    assert tree.grow(watcher, [*fleets.lines(51, 3.0)], name="next") is not None


def test_a_faint_fault_is_found_before_the_run_is_half_done(tree):
    (fault,) = (one for one in FAULTS if one.name == "tight-clip")
    program = PROGRAMS[fault.program]
    for seed in range(9):
        train(Run(program, seed), tree.runs)
    tree.age()
    train(worse := Run(program, 102, fault, STRENGTHS.index("faint")), tree.runs.parent / "later")
    lines = (tree.runs.parent / "later" / worse.path / "metrics.jsonl").read_text().splitlines()
    at = tree.grow(tree.watch(), lines, every=20)
    assert at is not None
    assert at < len(lines) / 2
