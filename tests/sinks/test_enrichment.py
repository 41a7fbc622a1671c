import os
import threading

import msgspec
import pytest
from msgspec.structs import replace

from sentinel.config.file import Config
from sentinel.sinks import enrichment
from sentinel.sinks.checkpoints import last_checkpoint
from sentinel.sinks.enrichment import completed
from sentinel.sources.identity import RunIdentity
from tests.patience import PATIENCE
from tests.sinks.samples import INCIDENT, NOTIFICATION

ONSET = 400


def made(home, *names):
    for name in names:
        place = home / name
        if "." in place.name.rstrip("/"):
            place.parent.mkdir(parents=True, exist_ok=True)
            place.touch()
        else:
            place.mkdir(parents=True)
    return home


@pytest.mark.parametrize(
    ("names", "last"),
    [
        (["checkpoint-100", "checkpoint-399", "checkpoint-400", "checkpoint-1000"], "checkpoint-399"),
        (["checkpoints/epoch=0-step=200.ckpt", "checkpoints/epoch=3-step=800.ckpt"], "epoch=0-step=200.ckpt"),
        (["global_step300", "global_step900", "latest"], "global_step300"),
        (["checkpoint/step-350", "checkpoint/step-700"], "step-350"),
        (["rl_model_300_steps.zip", "rl_model_600_steps.zip", "vecnormalize.pkl"], "rl_model_300_steps.zip"),
        (["step1000", "step20"], "step20"),
        (["events", "data-100.csv", "notes-100.txt", "checkpoint-notes"], ""),
        (["checkpoint-900"], ""),
    ],
)
def test_the_last_checkpoint_before_the_onset(names, last, tmp_path):
    checkpoint = last_checkpoint(str(made(tmp_path, *names)), ONSET, None)
    assert checkpoint.rpartition("/")[2] == last


@pytest.mark.parametrize("log", ["runs/Nov22/events.out", "wandb/offline-run/run.wandb"])
def test_checkpoints_lie_beside_the_folder_of_logs(log, tmp_path):
    made(tmp_path, "checkpoint-300", log)
    assert last_checkpoint(str(tmp_path / log), ONSET, None) == str(tmp_path / "checkpoint-300")


def test_checkpoints_of_a_neighbour_do_not_count(tmp_path):
    made(tmp_path, "b/checkpoint-300", "a/log.jsonl")
    assert last_checkpoint(str(tmp_path / "a"), ONSET, None) == ""


def test_a_checkpoint_without_a_step_counts_by_its_time(tmp_path):
    made(tmp_path, "best.pt", "last.pt")
    os.utime(tmp_path / "best.pt", (100, 100))
    os.utime(tmp_path / "last.pt", (300, 300))
    assert last_checkpoint(str(tmp_path), ONSET, 200.0) == str(tmp_path / "best.pt")
    assert last_checkpoint(str(tmp_path), ONSET, None) == ""


def test_a_notification_names_the_checkpoint(tmp_path):
    made(tmp_path, "checkpoint-350")
    notification = replace(NOTIFICATION, run=RunIdentity(run="a", location=str(tmp_path)))
    assert completed(notification, "").checkpoint == str(tmp_path / "checkpoint-350")
    assert (
        completed(
            replace(notification, run=RunIdentity(run="a", location=str(tmp_path / "gone"))), ""
        ).checkpoint
        == ""
    )


def test_the_checkpoint_is_from_before_the_earliest_open_incident_of_the_run(tmp_path):
    made(tmp_path, "checkpoint-100", "checkpoint-399")
    run = msgspec.structs.replace(NOTIFICATION.run, location=str(tmp_path))
    notification = replace(NOTIFICATION, run=run, first_onset=(200, None), checkpoint="")
    assert completed(notification, "").checkpoint == str(tmp_path / "checkpoint-100")


def test_a_file_system_that_hangs_holds_up_nothing(tmp_path, monkeypatch):
    released = threading.Event()
    ended = threading.Event()

    def hang(*_):
        released.wait()
        ended.set()
        return "late"

    monkeypatch.setattr(enrichment, "last_checkpoint", hang)
    monkeypatch.setattr(enrichment, "_MAX_LISTING_SECONDS", 0.01)
    notification = replace(NOTIFICATION, run=RunIdentity(run="a", location=str(tmp_path)))
    assert completed(notification, "").checkpoint == ""
    monkeypatch.setattr(enrichment, "_MAX_LISTING_SECONDS", 60.0)
    assert completed(notification, "").checkpoint == ""  # at once: the first listing still hangs
    released.set()
    assert ended.wait(PATIENCE)


def test_the_link_is_the_template_with_what_it_names_quoted():
    notification = replace(
        NOTIFICATION, run=RunIdentity(run="a b/<c>", location="/runs/a b"), incident=INCIDENT
    )
    template = "https://tb.example/?run={run}&path={path}&step={step}&x={other}"
    link = "https://tb.example/?run=a%20b%2F%3Cc%3E&path=%2Fruns%2Fa%20b&step=400&x={other}"
    assert completed(notification, template).link == link


@pytest.mark.parametrize(
    ("base", "begins"),
    [
        ("", "https://wandb.ai"),
        ("https://api.wandb.ai", "https://wandb.ai"),
        ("https://w.example/", "https://w.example"),
    ],
)
def test_a_run_on_a_server_has_a_page_of_its_own(base, begins, monkeypatch):
    monkeypatch.setenv("WANDB_BASE_URL", base)
    notification = replace(NOTIFICATION, run=RunIdentity(run="a", location="wandb://team/project/x1y2"))
    assert completed(notification, "").link == f"{begins}/team/project/runs/x1y2"


def test_a_link_must_be_an_address():
    assert Config(link="https://tb.example/{run}").link
    with pytest.raises(ValueError, match="http"):
        Config(link="javascript:alert(1)")
