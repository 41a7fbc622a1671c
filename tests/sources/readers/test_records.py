import math
import time as clock

import pytest

from sentinel.sources.readers.records import Records, is_misspelt, seconds


def read(*records, pieces=None):
    """(tag, step, value) of each point; the memory goes from piece to piece."""
    found = []
    memory = {}
    for start in range(0, len(records), pieces or len(records)):
        gathered = Records(memory)
        for line, record in enumerate(records[start : start + (pieces or len(records))], start + 1):
            gathered.add(record, line)
        memory = gathered.memory()
        chunk = gathered.chunk("run", False)
        found += zip(
            [chunk.tags[i] for i in chunk.tag], chunk.step.tolist(), chunk.value.tolist(), strict=True
        )
    return found


def steps(*records):
    """The step of each record, by its loss; the same when read one record at a time."""
    losses = [step for tag, step, _ in read(*records) if tag == "loss"]
    assert losses == [step for tag, step, _ in read(*records, pieces=1) if tag == "loss"]
    return losses


def values(*records, tag="loss"):
    found = [str(value) for name, _, value in read(*records) if name == tag]
    assert found == [str(value) for name, _, value in read(*records, pieces=1) if name == tag]
    return found


@pytest.mark.parametrize(
    "key",
    [
        "step",
        "global_step",
        "_step",
        "train/global_step",
        "trainer/global_step",
        "iter",
        "iteration",
        "current_steps",
    ],
)
def test_the_step_is_found_under_its_usual_names(key):
    assert read({key: 7, "loss": 0.5}) == [("loss", 7, 0.5)]


def test_a_nested_step():
    assert read({"train": {"global_step": 7, "loss": 0.5}}) == [("train/loss", 7, 0.5)]


def test_further_step_like_names_are_ordinary_tags():
    assert read({"iter": 3, "epoch": 1, "step": 7}) == [("iter", 7, 3.0), ("epoch", 7, 1.0)]


@pytest.mark.parametrize("key", ["global_step/max_steps", "iteration"])
def test_a_step_that_names_the_total(key):
    assert read({key: "12/500", "loss": 0.5}) == [("loss", 12, 0.5), ("max_steps", 12, 500.0)]


@pytest.mark.parametrize("step", [12, 12.0, "12", " 12 "])
def test_a_step_in_other_clothes(step):
    assert steps({"step": step, "loss": 0.5}) == [12]


@pytest.mark.parametrize("step", [math.nan, math.inf, 1e30, 2**64 - 1, "warm-up", 12.5])
def test_what_cannot_be_a_step(step):
    assert steps({"step": 3, "loss": 0.5}, {"step": step, "loss": 0.5}) == [3, 3]


def test_lines_count_where_there_is_no_step():
    assert steps({"loss": 3}, {"loss": 2}, {"loss": 1}) == [1, 2, 3]


def test_a_record_without_a_step_belongs_to_the_last_one():
    assert steps({"step": 5, "loss": 3}, {"loss": 2, "epoch": 1}, {"step": 6, "loss": 1}) == [5, 5, 6]


def test_a_whole_epoch_is_a_step_as_a_last_resort():
    assert steps({"epoch": 1, "loss": 3}, {"epoch": 2.0, "loss": 2}, {"loss": 1}) == [1, 2, 2]
    assert ("epoch", 1, 1.0) in read({"epoch": 1, "loss": 3})


def test_a_share_of_an_epoch_is_no_step():
    assert steps({"epoch": 0.5, "loss": 3}, {"epoch": 1.0, "loss": 2}, {"epoch": 1.5, "loss": 1}) == [1, 2, 3]


@pytest.mark.parametrize(
    ("name", "misspelt"),
    [
        *((name, True) for name in ("eporch", "epoc", "epohc", "epokh", "peoch", "epochs")),
        *((name, False) for name in ("epoch", "epochal", "episode", "echop", "poh", "")),
    ],
)
def test_one_slip_of_the_pen_makes_a_word_misspelt(name, misspelt):
    assert is_misspelt(name, "epoch") is misspelt


def test_iterations_that_begin_anew_in_each_epoch_are_added_up():
    train = [{"epoch": e, "iter": i, "loss": 1.0} for e in (1, 2, 3) for i in (10, 20)]
    validation = {"epoch": 1, "iter": 5, "loss": 1.0}
    assert steps(*train[:2], validation, *train[2:]) == [10, 20, 5, 30, 40, 50, 60]


@pytest.mark.parametrize(
    ("time", "seconds"),
    [
        (1.7e9, 1.7e9),
        (1.7e12, 1.7e9),
        (1.7e18, 1.7e9),
        ("1700000000", 1.7e9),
        ("2023-11-14T22:13:20Z", 1.7e9),
        ("2023-11-14 22:13:20", 1.7e9),
        ("2023-11-14T23:13:20+01:00", 1.7e9),
    ],
)
def test_times(time, seconds):
    records = Records({})
    records.add({"step": 1, "timestamp": time, "loss": 0.5}, 1)
    chunk = records.chunk("run", False)
    assert chunk.time.tolist() == [seconds]
    assert chunk.tags == ["loss"]


def test_a_time_without_a_zone_is_that_of_this_machine(monkeypatch):
    monkeypatch.setenv("TZ", "Asia/Tokyo")
    clock.tzset()
    try:
        assert seconds("2026-01-01 09:00:00") == seconds("2026-01-01 00:00:00Z") == 1767225600
        assert seconds("2026-01-01 00:00:00 UTC") == seconds("2026-01-01 00:00:00GMT") == 1767225600
        assert seconds("0001-01-01 00:00:00") is None
    finally:
        monkeypatch.undo()
        clock.tzset()


def test_a_time_that_is_a_duration_is_a_metric():
    records = Records({})
    records.add({"step": 1, "time": 0.25}, 1)
    chunk = records.chunk("run", False)
    assert math.isnan(chunk.time[0])
    assert (chunk.tags, chunk.value.tolist()) == (["time"], [0.25])


@pytest.mark.parametrize("text", ["0:01:03", "not a date", "12%"])
def test_a_time_that_is_text(text):
    assert read({"step": 1, "time": text, "loss": 0.5}) == [("loss", 1, 0.5)]


@pytest.mark.parametrize(
    ("text", "value"),
    [("0.5", 0.5), ("1e-3", 0.001), ("-2", -2.0), (".5", 0.5), ("NaN", math.nan), ("-Infinity", -math.inf)],
)
def test_numbers_as_text(text, value):
    assert values({"step": 1, "loss": text}) == [str(value)]


@pytest.mark.parametrize("other", ["text", "", "1_000", "0x1f", "5%", "١٢", True, [1.0], {}, None])
def test_what_is_no_number_is_ignored(other):
    assert read({"step": 1, "other": other, "loss": 0.5}) == [("loss", 1, 0.5)]


def test_nesting_is_joined_with_slashes():
    assert read({"step": 1, "train": {"loss": {"total": 0.5}}}) == [("train/loss/total", 1, 0.5)]


def test_the_numbers_of_a_summary_of_coco_have_their_usual_names():
    boxes = [0.42, 0.64, 0.45, 0.2, 0.46, 0.62, 0.34, 0.55, 0.59, 0.34, 0.65, 0.83]
    points = read({"step": 3, "test_coco_eval_bbox": boxes})
    assert points[0] == ("test_coco_eval_bbox/mAP", 3, 0.42)
    assert points[1] == ("test_coco_eval_bbox/mAP_50", 3, 0.64)
    assert points[-1] == ("test_coco_eval_bbox/AR_l", 3, 0.83)
    keypoints = read({"step": 3, "test": {"coco_eval_keypoints": boxes[:10]}})
    assert keypoints[5] == ("test/coco_eval_keypoints/AR", 3, 0.62)


@pytest.mark.parametrize(("name", "numbers"), [("test_coco_eval_bbox", 3), ("class_ap", 12)])
def test_another_list_has_no_names_for_its_numbers(name, numbers):
    assert read({"step": 3, name: [0.5] * numbers, "loss": 0.5}) == [("loss", 3, 0.5)]


def test_nesting_has_an_end():
    record = {"loss": 0.5}
    for _ in range(500):
        record = {"deeper": record}
    assert read({"step": 1, "loss": 0.25, **record}) == [("loss", 1, 0.25)]


@pytest.mark.slow
def test_joined_names_have_bounded_memory():
    record = {"x" * 1_000_000: {str(i): 1.0 for i in range(100_000)}}
    assert len(read(record)) < 10


def test_a_null_after_numbers_is_what_orjson_makes_of_nan():
    assert values({"loss": 2.0}, {"loss": 1.0}, {"loss": None}, {"loss": None}) == [
        "2.0",
        "1.0",
        "nan",
        "nan",
    ]


def test_a_null_before_any_number_is_not_logged():
    assert values({"loss": None}, {"loss": 1.0}, {"loss": None}) == ["1.0"]


def test_a_null_beside_a_number_that_is_seldom_there_is_not_logged():
    training = {"loss": 1.0, "eval_loss": None}
    evaluation = {"loss": None, "eval_loss": 1.0}
    assert values(training, evaluation, training, evaluation) == ["1.0", "1.0"]
    assert values(training, evaluation, training, evaluation, tag="eval_loss") == ["1.0", "1.0"]
    assert values({"loss": 1.0}, {"loss": None, "train_runtime": 9.0}, {"loss": None}) == ["1.0"]


def test_held_out_data_that_are_measured_first_need_not_be_measured_next():
    rows = [{"train_loss": 2.0, "val_loss": 2.0 if n % 3 == 0 else None} for n in range(7)]
    assert values(*rows, tag="val_loss") == ["2.0"] * 3
    always = [{"train_loss": 2.0, "val_loss": 2.0}] * 4
    assert values(*always, *rows[1:2], tag="val_loss") == ["2.0"] * 4 + ["nan"]


def test_a_null_without_a_learning_rate_is_not_logged():
    """LLaMA-Factory's last line has neither loss nor learning rate."""
    training = {"current_steps": 5, "loss": 1.0, "lr": 0.1, "percentage": 50.0}
    summary = {"current_steps": 6, "loss": None, "lr": None, "percentage": 100.0}
    assert values(training, training, summary) == ["1.0", "1.0"]


def test_a_series_may_be_missing_elsewhere_and_its_null_still_be_nan():
    assert values({"loss": 1.0}, {"eval_loss": 2.0}, {"loss": None}) == ["1.0", "nan"]


@pytest.mark.slow
def test_nulls_of_very_many_series_are_not_logged():
    many = {f"layer{i}": 1.0 for i in range(5000)}
    memory = Records({})
    memory.add(many, 1)
    assert len(memory.memory()["presence"]) <= 1000
    assert values(many, {**many, "layer4999": None}, tag="layer4999") == ["1.0"]


def test_steps_that_fall_are_the_lengths_of_episodes():
    lengths = [20, 31, 17, 45, 12]
    assert steps(*({"steps": n, "loss": 1.0} for n in lengths)) == [20, 31, 32, 33, 34]
    assert steps(*({"steps": n, "loss": 1.0} for n in range(5))) == [*range(5)]
    assert steps(*({"step": n, "loss": 1.0} for n in (1, 2, 1))) == [1, 2, 1], "a resume"


def test_a_validation_of_mmengine_counts_epochs():
    train = [{"loss": 1.0, "epoch": e, "iter": i, "step": i} for e, i in ((1, 50), (1, 100), (2, 150))]
    validation = {"loss": 0.5, "step": 1}
    assert steps(*train[:2], validation, train[2], validation | {"step": 2}) == [50, 100, 100, 150, 150]
    assert steps({"loss": 1.0, "step": 50}, validation) == [50, 1]


def test_a_bare_metric_beside_the_loss_of_held_out_data_is_of_that_data():
    train = {"epoch": 1, "train_loss": 0.5, "acc": 0.9}
    held_out = {"epoch": 1, "val_loss": 0.6, "acc": "0.8", "lr": 0.1}
    assert values(train, held_out, tag="acc") == ["0.9"]
    assert values(train, held_out, tag="val_acc") == ["0.8"]
    assert values(train, held_out, tag="lr") == ["0.1"]


@pytest.mark.parametrize("other", [{"loss": 0.5}, {"train_loss": 0.5}, {"test_loss": 0.5}])
def test_a_bare_metric_beside_losses_of_several_parts_keeps_its_name(other):
    assert values({"epoch": 1, "val_loss": 0.6, "acc": 0.8} | other, tag="acc") == ["0.8"]
