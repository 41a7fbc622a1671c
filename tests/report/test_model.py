"""What a report says beside the incidents: checkpoints, cost, console lines, texts, images, blind spots."""

import json
import shutil

import numpy as np
import pytest
from tensorboardX import SummaryWriter

from sentinel.config.file import Config
from sentinel.detectors.logging_snippets import PROBE, line_for
from sentinel.detectors.signals import Signal
from sentinel.replays.replaying import replay_in_parts
from sentinel.report import markdown
from sentinel.report.html import render
from sentinel.report.model import replay_report
from sentinel.sources.tensorboard import samples

pytestmark = pytest.mark.slow

NOW = 1.8e9
HOSTILE = "<img src=x onerror=alert(1)>\u202e"


@pytest.fixture
def told(tmp_path):
    """The story of what lies in the test's directory."""
    config = Config(signals={"train/kl": "kl"})

    def tell():
        parts = replay_in_parts([tmp_path], config, lambda *_: None, curves=True)
        return replay_report(parts, NOW, "worst")

    return tell


def rows(path, kl_from=60, **columns):
    """A log of a hundred steps, one a minute, whose KL is high from a step on."""
    lines = [{"config": {"world_size": 8}}]
    for step in range(100):
        row = {"step": step, "time": 1.7e9 + 60 * step, "train/kl": 3.0 if step >= kl_from else 0.01}
        lines.append(
            row | {tag.replace("__", "/"): f(step) for tag, f in columns.items() if f(step) is not None}
        )
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))


def evaluated(best):
    """A value at each twentieth step, the further from the best step the larger."""
    return lambda step: abs(step - best) / 100 + 1.0 if step % 20 == 0 else None


def test_the_checkpoint_to_keep_is_the_best_by_the_evaluation_loss(told, tmp_path):
    rows(
        tmp_path / "metrics.jsonl",
        eval__loss=evaluated(40),
        eval__accuracy=lambda s: s / 100 if s % 10 == 0 else None,
    )
    for step in (20, 40, 50, 80):
        (tmp_path / f"checkpoint-{step}").mkdir()
    keep = told().runs[0].keep
    assert keep.path.endswith("checkpoint-40")
    assert keep.reason == (
        "eval loss is 1 there, the lowest of 3 checkpoints on disk from before step 60 (its settings name "
        "no other metric). By eval accuracy the one of step 50 is better (0.5, against 0.4). The run spent "
        "59 min after it."
    )


def test_a_run_that_names_its_metric_is_taken_at_its_word(told, tmp_path):
    rows(
        tmp_path / "metrics.jsonl",
        eval__loss=evaluated(40),
        eval__f1=lambda s: s / 100 if s % 10 == 0 else None,
    )
    (tmp_path / "training_args.json").write_text('{"metric_for_best_model": "f1", "greater_is_better": true}')
    for step in (20, 40, 50, 80):
        (tmp_path / f"checkpoint-{step}").mkdir()
    keep = told().runs[0].keep
    assert keep.path.endswith("checkpoint-50")
    assert "f1 is 0.5 there, the highest of 3 checkpoints on disk from before step 60 (the" in keep.reason


def test_no_checkpoint_is_named_that_nobody_evaluated(told, tmp_path):
    rows(tmp_path / "metrics.jsonl", eval__loss=lambda s: 1.0 if s == 60 else None)
    (tmp_path / "checkpoint-50").mkdir()
    assert told().runs[0].keep is None


def test_what_the_trouble_cost_counts_from_its_onset_to_the_end(told, tmp_path):
    rows(tmp_path / "metrics.jsonl")
    run = told().runs[0]
    (found,) = [one for one in run.incidents if one.detector == "kl-blowup"]
    assert found.onset_step == 60
    assert run.cost == "39 of 99 steps, 39 min, 5.2 GPU-hours since step 60"
    assert found.cost == "39 steps, 39 min"


def test_a_quiet_run_has_cost_nothing(told, tmp_path):
    rows(tmp_path / "metrics.jsonl", kl_from=1000)
    assert told().runs[0].cost == ""


def printed(run, detector):
    return next(one.printed for one in run.incidents if one.detector == detector)


def test_an_error_stands_among_the_lines_around_it(told, tmp_path):
    rows(tmp_path / "metrics.jsonl", kl_from=1000)
    before = [f"loading shard {n}" for n in range(40)]
    error = ["Traceback (most recent call last):", '  File "train.py", line 3, in <module>', "ValueError: no"]
    (tmp_path / "train.log").write_text("\n".join([*before, *error]) + "\n")
    found = printed(told().runs[0], "console-error")
    assert found.origin == "train.log"
    assert found.lines[found.at - found.first] == "ValueError: no"
    assert found.lines[0] == "loading shard 36"
    assert found.lines[-2] == '  File "train.py", line 3, in <module>'


@pytest.mark.parametrize(
    "stamp",
    ["2023-11-14 22:{:02}:20 tick", "step {}: loss 1.5", "[{}/100] loss 1.5"],
    ids=["time", "step", "of"],
)
def test_other_trouble_is_found_in_the_lines_by_its_time_or_its_step(told, tmp_path, stamp):
    rows(tmp_path / "metrics.jsonl", kl_from=46)  # at 22:59:20
    (tmp_path / "train.log").write_text("".join(stamp.format(i) + "\n" for i in range(60)))
    found = printed(told().runs[0], "kl-blowup")
    assert found.lines[found.at - found.first] == stamp.format(59 if "tick" in stamp else 46)


def test_lines_that_tell_neither_time_nor_step_are_left_out(told, tmp_path):
    rows(tmp_path / "metrics.jsonl")
    (tmp_path / "train.log").write_text("hello\n" * 100)
    assert printed(told().runs[0], "kl-blowup") is None


@pytest.fixture
def illustrated(tmp_path):
    """A TensorBoard run with a text and an image at each tenth step."""
    with SummaryWriter(str(tmp_path)) as writer:
        for step in range(100):
            writer.add_scalar("train/kl", 3.0 if step >= 60 else 0.01, step)
            if step % 10 == 0:
                writer.add_text("answer", f"{HOSTILE} of step {step}", step)
                writer.add_image("pixels", np.full((3, 8, 8), step / 100, np.float32), step)
    return tmp_path


@pytest.mark.long
def test_texts_and_images_nearest_to_the_onset_are_shown(told, illustrated):
    told = told()
    (found,) = [one.samples for one in told.runs[0].incidents if one.detector == "kl-blowup"]
    text, image = found
    assert (text.tag.partition("/")[0], text.step, image.step) == ("answer", 60, 60)
    assert text.text == "<img src=x onerror=alert(1)>  of step 60"
    assert image.image.startswith("data:image/png;base64,iVBOR")
    page = render(told)
    assert f'<img src="{image.image}"' in page
    assert page.count("<img src") == 1
    assert "&lt;img src=x" in page


def test_files_that_are_too_large_or_too_many_are_said(told, illustrated, monkeypatch):
    monkeypatch.setattr(samples, "_MAX_FILE_BYTES", 100)
    (problem,) = told().runs[0].problems
    assert problem.endswith("so its texts and images are not shown")
    shutil.copy(next(illustrated.glob("*tfevents*")), illustrated / "events.out.tfevents.1.copy")
    monkeypatch.setattr(samples, "_MAX_EVENT_FILES", 1)
    assert "texts and images were searched in 1 of 2 event files" in told().runs[0].problems


def test_damaged_event_files_show_what_is_whole(told, illustrated):
    (file,) = illustrated.glob("*tfevents*")
    data = bytearray(file.read_bytes())
    at = data.rindex(b"of step 90")
    data[at : at + 4] = b"\xff\xff\xff\xff"
    file.write_bytes(data[:-7])
    (found,) = [one.samples for one in told().runs[0].incidents if one.detector == "kl-blowup"]
    assert {one.step for one in found} == {60}


def test_what_is_not_logged_has_the_line_that_logs_it(told, tmp_path):
    rows(tmp_path / "metrics.jsonl")
    told = told()
    (blind,) = [one for one in told.runs[0].blind if one.signals == "loss_scale"]
    assert (blind.detectors, blind.lines) == (["loss-scale-collapse"], [line_for(Signal.LOSS_SCALE, "")])
    assert "log(&#34;loss_scale&#34;, scaler.get_scale())" in render(told)


def test_what_a_probe_would_log_has_one_row_which_stands_first(told, tmp_path):
    rows(tmp_path / "metrics.jsonl")
    first, *others = told().runs[0].blind
    assert first.lines[0].startswith(PROBE)
    assert {"weights-unchanged", "broken-batches", "evaluation-mode"} <= {*first.detectors}
    assert not [lack for lack in others if any(line.startswith(PROBE) for line in lack.lines)]


def test_a_page_says_how_many_of_the_detectors_that_fit_could_judge(told, tmp_path):
    rows(tmp_path / "metrics.jsonl")
    report = told()
    fitting = report.runs[0].fit
    assert fitting.able < fitting.fitting < report.runs[0].detectors
    assert f"<dd>{fitting.able} of {fitting.fitting}<small>that fit could judge it" in render(report)


def test_the_chart_of_the_outcome_is_marked(told, tmp_path):
    rows(
        tmp_path / "metrics.jsonl",
        val_mcc=lambda step: 0.9 - 0.8 * 0.95**step,
        train_loss=lambda step: 0.95**step,
    )
    report = told()
    assert report.runs[0].outcome == ("val_mcc", "higher")
    assert "<small>eval score, the outcome, higher is better</small>" in render(report)


def test_the_report_names_settings_with_their_origin(told, tmp_path):
    rows(tmp_path / "metrics.jsonl")
    (tmp_path / "training_args.json").write_text('{"adam_epsilon": 1e-6}')
    assert ("adam_epsilon", "1e-06", "training_args.json") in told().runs[0].settings
    assert "Cost so far" in markdown.render(told())
