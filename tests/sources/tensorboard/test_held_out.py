"""Directories of held-out data beside a training: which belong to it, and how both are judged."""

import random
import shutil
from pathlib import Path

import pytest
from tensorboard.compat.proto.event_pb2 import Event
from tensorboard.compat.proto.summary_pb2 import Summary
from tensorboard.summary.writer.event_file_writer import EventFileWriter

from sentinel.config.file import Config
from sentinel.detectors.discovery import all_detectors
from sentinel.pipeline import Pipeline
from sentinel.replays.replaying import replay
from sentinel.sources.discovery import discover, run_name
from sentinel.watch.watched import WatchedRun, WatchedRuns

EPOCHS = 60


@pytest.fixture
def keras(tmp_path):
    """The directories of Keras' callback: the training's loss becomes NaN, that of the validation grows."""
    writers = [EventFileWriter(str(tmp_path / name)) for name in ("train", "validation")]
    for epoch in range(EPOCHS):
        losses = (float("nan") if epoch > 40 else 2 / (epoch + 1), 1.0 + (epoch / 20) ** 2)
        for offset, writer, loss in zip((0.0, 0.5), writers, losses, strict=True):
            summary = Summary(value=[Summary.Value(tag="epoch_loss", simple_value=loss)])
            writer.add_event(Event(wall_time=1.7e9 + 60 * epoch + offset, step=epoch, summary=summary))
    for writer in writers:
        writer.close()
    return tmp_path


def file_in(directory: Path) -> Path:
    (file,) = directory.iterdir()
    return file


def names(directory: Path) -> list[str]:
    return [run_name(run, directory) for run in discover([directory]).runs]


@pytest.mark.slow
def test_one_run_with_two_streams(keras):
    (run,) = replay([keras], Config(), lambda *_: None).runs
    log = run.run_pipeline.log
    assert (log.name, log.attempts, log.metadata.points) == ("train", 1, 2 * EPOCHS)
    assert log.understanding().signals == {"loss": ["epoch_loss"], "eval_loss": ["validation/epoch_loss"]}
    assert {one.tag for one in run.incidents.values()} == {"epoch_loss", "validation/epoch_loss"}


@pytest.mark.slow
def test_directories_of_two_processes_are_two_runs(keras):
    file = file_in(keras / "validation")
    host, process, count = file.name.rsplit(".", 2)
    file.rename(file.with_name(f"{host}.{process}7.{count}"))
    assert names(keras) == ["train", "validation"]


def test_a_part_that_was_there_first_stays_a_run(keras):
    train = file_in(keras / "train")
    validation = file_in(keras / "validation")
    names_of = train.name, validation.name
    train.rename(train.with_name(names_of[1]))
    validation.rename(validation.with_name(names_of[0]))
    assert names(keras) == ["train", "validation"]


def test_trainings_of_ultralytics_are_runs_beside_a_validation(keras):
    """`train2` is a training, and `val` the validation of a program of its own."""
    shutil.copytree(keras / "train", keras / "train2")
    file = file_in(keras / "validation")
    (keras / "val").mkdir()
    file.rename(keras / "val" / "events.out.tfevents.1700009999.host.99.0")
    shutil.rmtree(keras / "validation")
    assert names(keras) == ["train", "train2", "val"]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("training", "validation"),
    [
        ("loss_train", "loss_val"),
        ("Train vs. Val Loss_Training", "Train vs. Val Loss_Validation"),
        ("Loss_Train Loss", "Loss_Test Loss"),
        ("loss_train_loss", "loss_eval_loss"),
        ("Losses_TRAIN", "Losses_VAL"),
    ],
)
def test_add_scalars_of_torch(keras, training, validation):
    (keras / "train").rename(keras / training)
    (keras / "validation").rename(keras / validation)
    (run,) = replay([keras], Config(), lambda *_: None).runs
    assert set(run.run_pipeline.log.understanding().signals) == {"loss", "eval_loss"}


def test_a_change_of_the_part_concerns_the_run(keras):
    (run,) = discover([keras / "train"]).runs
    pipeline = Pipeline((), {}, {}, pytest.fail)
    watched = WatchedRun(pipeline.track(run, "train"), 0.0, 0.0)
    runs = WatchedRuns()
    runs.add(watched)
    assert [*runs.touched([file_in(keras / "validation")])] == [watched]
    assert [*runs.touched([keras / "other" / "events"])] == []


@pytest.mark.slow
def test_the_part_of_another_process_is_found_beside_a_known_run(keras):
    assert names(keras) == ["train"]
    (keras / "test").mkdir()
    shutil.copy(file_in(keras / "train"), keras / "test" / "events.out.tfevents.1800000000.host.1.0")
    assert names(keras) == ["test", "train"]


@pytest.mark.long  # replays whole runs
@pytest.mark.parametrize("seed", range(3))
def test_any_order_of_arrival_gives_what_a_replay_gives(keras, tmp_path_factory, seed):
    """Each writer flushes when it likes: the validation may be seconds or the whole training late."""
    dice = random.Random(seed)
    grown = tmp_path_factory.mktemp("grown")
    contents = [(file.relative_to(keras), file.read_bytes()) for file in sorted(keras.rglob("*tfevents*"))]
    sizes = [0, 0]
    for name, _ in contents:  # a process creates its files in the order of their names
        (grown / name).parent.mkdir()
        (grown / name).touch()
    (run,) = discover([grown]).runs
    detectors = [detector for detector in all_detectors().values() if detector.enabled]
    pipeline = Pipeline(detectors, {}, {}, lambda *failure: pytest.fail(str(failure)))
    run_pipeline = pipeline.track(run, "train")
    incidents = {}
    favourite = dice.choice([0.02, 0.5, 0.98])
    while any(size < len(content) for size, (_, content) in zip(sizes, contents, strict=True)):
        which = 0 if sizes[1] == len(contents[1][1]) or dice.random() < favourite else 1
        name, content = contents[which]
        end = sizes[which] + dice.choice([7, 150, 900])
        with (grown / name).open("ab") as file:
            file.write(content[sizes[which] : end])
        sizes[which] = min(end, len(content))
        (advance,) = pipeline.advance([run_pipeline])
        incidents |= {change.incident.id: change.incident for change in advance.changes}
    (last,) = pipeline.finalize([run_pipeline])
    incidents |= {change.incident.id: change.incident for change in last.changes}
    incidents |= {incident.id: incident for incident in run_pipeline.incidents.open()}
    (replayed,) = replay([grown], Config(), lambda *_: None).runs
    assert {one.detector for one in replayed.incidents.values()} >= {
        "non-finite-metric",
        "generalization-gap",
    }
    assert {i: one.replace(evidence={}) for i, one in incidents.items()} == {
        i: one.replace(evidence={}) for i, one in replayed.incidents.items()
    }
