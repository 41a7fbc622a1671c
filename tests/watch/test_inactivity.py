"""Runs that fall silent: one alone, all together, and one that another run continues."""

import json
from itertools import chain

import pytest
from tensorboardX import SummaryWriter

from sentinel.detectors.api import Severity
from sentinel.detectors.discovery import all_detectors
from sentinel.pipeline import Pipeline
from sentinel.storage.store import Store
from tests.chosen_detectors import choose_detectors
from tests.sources.wandb.log_writer import WandbLog
from tests.watch.test_watcher import House

pytestmark = pytest.mark.slow

SILENCES = ("stream-stall", "ended-or-stuck")


@pytest.fixture
def house(tmp_path, monkeypatch):
    only = {name: all_detectors()[name] for name in SILENCES}  # forty runs cost the others much time
    choose_detectors(monkeypatch, only)
    return House(tmp_path)


def grow(house, watcher, names, steps, minutes=1):
    """What is told of stalls when the runs grow and time passes."""
    for name in names:
        house.log(name, steps, kl=0.1, at=house.clock.now() - steps.start)
    return house.look(watcher, hours=minutes / 60, detector=SILENCES)


@pytest.mark.long
@pytest.mark.parametrize(("count", "alone"), [(40, False), (4, True)], ids=["all", "one"])
def test_forty_runs_on_a_file_system_that_goes_away_are_one_message(house, count, alone):
    names = [f"run {number}" for number in range(count)]
    watcher = house.watch()
    for begin in range(0, 60, 20):
        assert grow(house, watcher, names, range(begin, begin + 20)) == []
    assert grow(house, watcher, names[:1], range(60, 61)) == []
    others = names[1:] if alone else []
    waits = enumerate([9, 1, 1, 1])  # minutes
    messages = [grow(house, watcher, others, range(60 + n, 61 + n), minutes) for n, minutes in waits]
    first = [news for news in messages if news]
    if alone:
        assert first == [["firing: first-notification"]]
        return
    assert (
        sorted(chain.from_iterable(first))
        == ["firing: first-notification"] + ["firing: told-of-another-log"] * 39
    )
    with Store(house.state) as store:
        (entry,) = store.outbox.worst("terminal", 100)
    incident = json.loads(entry.body)["incident"]
    assert incident["summary"].startswith(f"all 40 runs below {house.runs} fell silent together: ended, or")
    assert incident["severity"] == Severity.WARNING
    over = [grow(house, watcher, names, range(80 + n, 81 + n)) for n in range(2)]
    assert sorted(chain.from_iterable(over)) == ["resolved: not-sent-before"] * 39 + ["resolved: resolved"]


def test_runs_that_should_go_on_and_fall_silent_together_are_critical(house):
    names = [f"run {number}" for number in range(3)]
    watcher = house.watch()
    for name in names:
        house.log(name, range(1), kl=0.1, total_steps=1000, at=house.clock.now())
    for begin in range(1, 61, 20):
        grow(house, watcher, names, range(begin, begin + 17))
    messages = [grow(house, watcher, [], range(0), minutes=15) for _ in range(4)]
    assert [sorted(news) for news in messages if news] == [
        ["firing: first-notification"] + ["firing: told-of-another-log"] * 2
    ]
    with Store(house.state) as store:
        (entry,) = store.outbox.worst("terminal", 100)
    incident = json.loads(entry.body)["incident"]
    assert incident["summary"].startswith(f"all 3 runs below {house.runs} fell silent together, so look at")
    assert incident["severity"] == Severity.CRITICAL


@pytest.mark.long
def test_three_runs_of_one_length_that_stop_together_are_one_question(house):
    names = [f"run {number}" for number in range(3)]
    watcher = house.watch()
    for begin in range(0, 60, 20):
        grow(house, watcher, names, range(begin, begin + 17))
    messages = [grow(house, watcher, [], range(0), minutes=15) for _ in range(100)]
    assert [sorted(news) for news in messages if news] == [
        ["firing: first-notification"] + ["firing: told-of-another-log"] * 2
    ]
    with Store(house.state) as store:
        (entry,) = store.outbox.worst("terminal", 100)
    incident = json.loads(entry.body)["incident"]
    assert incident["summary"].startswith(f"all 3 runs below {house.runs} stopped at the same step: ended or")
    assert (incident["severity"], incident["causes"]) == (Severity.WARNING, [])


def test_a_run_that_stops_where_its_siblings_stopped_has_ended(house):
    watcher = house.watch()
    for name in ("first", "second"):
        for begin in range(0, 60, 20):
            grow(house, watcher, [name], range(begin, begin + 17))
        messages = [*chain.from_iterable(grow(house, watcher, [], range(0), minutes=10) for _ in range(20))]
        assert messages == (["firing: first-notification"] if name == "first" else []), name


def test_runs_that_stop_one_after_the_other_are_not_told_of_together(house):
    names = [f"run {number}" for number in range(3)]
    watcher = house.watch()
    for begin in range(0, 60, 20):
        grow(house, watcher, names, range(begin, begin + 20))
    messages = [grow(house, watcher, names[n:], range(60 + 5 * n, 65 + 5 * n), minutes=5) for n in (1, 2, 3)]
    messages += [grow(house, watcher, [], range(0), minutes=5) for _ in range(2)]
    assert [news for news in messages if news] == [["firing: first-notification"]] * 3
    with Store(house.state) as store:
        bodies = [json.loads(entry.body) for entry in store.outbox.worst("terminal", 100)]
    assert {body["incident"]["summary"][:13] for body in bodies} == {"no new point "}


def test_a_run_that_another_one_continues_does_not_stall(house):
    watcher = house.watch()
    for begin in range(0, 60, 20):
        grow(house, watcher, ["first"], range(begin, begin + 20))
    for begin in range(60, 65):
        assert grow(house, watcher, ["second"], range(begin, begin + 1), minutes=5) == []


def test_a_run_of_another_framework_beside_it_does_not_continue_a_run(house):
    watcher = house.watch()
    for begin in range(0, 60, 20):
        grow(house, watcher, ["first"], range(begin, begin + 20))
    messages = []
    for step in range(5, 505, 100):
        rows = ({"step": step + n, "time": house.clock.now() + n} for n in range(0, 100, 5))
        with (house.runs / "second.jsonl").open("a") as file:
            for row in rows:
                metrics = {"train/loss": 1.0, "train/grad_norm": 1.0, "train/learning_rate": 1e-3}
                file.write(
                    json.dumps({**row, **metrics, "train/epoch": 0.1, "train/global_step": step}) + "\n"
                )
        messages += house.look(watcher, hours=0.1, detector=SILENCES)
    assert messages == ["firing: first-notification"]


def test_the_logs_of_two_trainings_are_not_many_runs_that_fell_silent_together(house):
    watcher = house.watch()
    names = ("one", "other")
    for name in names:
        (house.runs / name).mkdir()
        (house.runs / name / "progress.csv").write_text("step,loss,kl\n")
    for begin in range(0, 60, 20):
        for name in names:
            house.log(f"{name}/metrics", range(begin, begin + 20), kl=0.1)
            with (house.runs / name / "progress.csv").open("a") as log:
                log.writelines(f"{step},{2.0 - step / 100},0.1\n" for step in range(begin, begin + 20))
        house.look(watcher, hours=1 / 60)
    assert len(watcher.logs()) == 4
    messages = [house.look(watcher, hours=1 / 60, detector=SILENCES) for _ in range(15)]
    assert "firing: first-notification" in chain.from_iterable(messages)
    with Store(house.state) as store:
        assert not [one.summary for one in store.incidents() if "runs_silent" in one.evidence]


def test_of_a_log_that_never_trained_nobody_is_asked(house):
    """The hyperparameters of tensorboardX are a run with one step, and an idle rank has an empty log."""
    watcher = house.watch()
    house.look(watcher)
    for name, values in (("hparams", [1.0]), ("idle", []), ("trained", [1.0, 0.9, 0.8])):
        with SummaryWriter(str(house.runs / name)) as log:
            log.add_text("about", "a text")
            for step, value in enumerate(values):
                log.add_scalar("hparam/metric", value, step)
    house.look(watcher)
    assert len(watcher.logs()) == 3
    messages = [house.look(watcher, hours=0.5, detector=SILENCES) for _ in range(4)]
    assert [*chain.from_iterable(messages)] == ["firing: first-notification"]
    with Store(house.state) as store:
        assert {one.run.rpartition("/")[2] for one in store.incidents()} == {"trained"}


def test_a_pause_for_an_evaluation_is_asked_about_once(house):
    watcher = house.watch()
    messages = []
    for begin in range(0, 120, 20):
        messages += grow(house, watcher, ["run"], range(begin, begin + 20))
        if begin in (40, 80):
            messages += chain.from_iterable(grow(house, watcher, [], range(0)) for _ in range(12))
    assert messages == ["firing: first-notification", "resolved: resolved"]
    silent = [grow(house, watcher, [], range(0)) for _ in range(30)]
    assert [*chain.from_iterable(silent)] == ["reopened: reopened"], (
        "what is longer than ever is another matter"
    )


def test_a_run_whose_directory_vanishes_is_told_of(house):
    watcher = house.watch()
    for begin in range(0, 60, 20):
        grow(house, watcher, ["run"], range(begin, begin + 20))
    (house.runs / "run.jsonl").unlink()
    assert house.look(watcher, hours=1, detector=SILENCES) == ["firing: first-notification"]
    with Store(house.state) as store:
        (entry,) = store.outbox.worst("terminal", 100)
    incident = json.loads(entry.body)["incident"]
    assert incident["summary"].startswith("its log is gone: it was removed or moved, or its file system")
    assert incident["causes"] == []


@pytest.mark.parametrize(("minutes", "messages"), [(40, []), (70, ["firing: first-notification"])])
def test_a_log_that_is_written_at_checkpoints_has_an_hour_until_it_was_written_twice(
    house, minutes, messages
):
    """Hugging Face's Trainer logs nowhere else by default, and no process holds that file."""
    watcher = house.watch()

    def save(step):
        rows = [{"step": n, "loss": 2.0, "learning_rate": 1e-3 - n * 1e-7} for n in range(10, step + 1, 10)]
        state = {"global_step": step, "max_steps": 5000, "save_steps": 500, "log_history": rows}
        checkpoint = house.runs / "out" / f"checkpoint-{step}"
        checkpoint.mkdir(parents=True)
        (checkpoint / "trainer_state.json").write_text(json.dumps(state))

    house.look(watcher)
    save(500)
    silent = [house.look(watcher, hours=1 / 60, detector=SILENCES) for _ in range(minutes)]
    assert [*chain.from_iterable(silent)] == messages
    save(1000)
    house.look(watcher, detector=SILENCES)
    silent = [house.look(watcher, hours=1 / 60, detector=SILENCES) for _ in range(minutes)]
    assert [*chain.from_iterable(silent)] == [], "it is usual by now"


@pytest.mark.long
@pytest.mark.parametrize("goes_on", [True, False])
def test_a_training_is_silent_once_all_of_its_logs_are(house, goes_on):
    """wandb writes its record in blocks, long after what the training printed."""
    record = house.runs / "offline-run-20260101_000000-abc"
    (record / "files").mkdir(parents=True)
    log = WandbLog(record / "run-abc.wandb")
    printed = record / "files" / "output.log"
    watcher = house.watch()
    messages = []
    for step in range(90):
        if goes_on or step < 30:
            with printed.open("a") as file:
                file.write(f"step {step}/1000: loss 0.5\n")
        if step < 30:
            log.history({"_step": step, "loss": 0.5, "_timestamp": house.clock.now()})
        messages += house.look(watcher, hours=1 / 60, detector=SILENCES)
    assert messages[:1] == ([] if goes_on else ["firing: first-notification"])
    assert messages.count("firing: first-notification") <= 1


def test_only_runs_to_which_time_may_bring_something_are_reviewed(house, monkeypatch):
    reviewed = []
    review = Pipeline.review
    monkeypatch.setattr(
        Pipeline, "review", lambda *arguments: reviewed.append(arguments) or review(*arguments)
    )
    watcher = house.watch()
    for begin in (0, 20):
        assert grow(house, watcher, ["run"], range(begin, begin + 20)) == []
    assert not reviewed, "it was heard a moment ago"
    assert grow(house, watcher, [], range(0), minutes=600) == ["firing: first-notification"]
    assert len(reviewed) == 1
    for minutes, count in ((0.4, 1), (0.4, 1), (0.4, 2)):
        grow(house, watcher, [], range(0), minutes)
        assert len(reviewed) == count, "a long silence is looked at again after a minute"
    assert grow(house, watcher, ["run"], range(40, 60)) == ["resolved: resolved"]
