"""Secrets in the settings and lines of a run: no form of output shows one of twenty canaries."""

import json
import re
import shutil
import time
from contextlib import ExitStack

import orjson
import pytest

import sentinel as library
from sentinel.config.file import Config
from sentinel.mcp_server.known import Answers
from tests.sinks.receiver import Receiver
from tests.web.conftest import TOKEN, serving

pytestmark = pytest.mark.long  # it judges a run in every form

BIRD = "cAnArY"

SETTINGS = {
    "hf_token": f"{BIRD}01",
    "openai_api_key": f"{BIRD}02",
    "db": {"password": f"{BIRD}03", "port": 5432},
    "sentry_dsn": f"https://{BIRD}04@sentry.invalid/1",
    "session_cookie": f"{BIRD}05",
    "aws": {"secret_access_key": f"{BIRD}06", "id": f"AKIA{BIRD.upper()}0000006"},
    "credentials": {"user": "alice", "value": f"{BIRD}07"},
    "note": f"downloaded with hf_{BIRD}0008",
    "model": f"https://bob:{BIRD}09@git.invalid/model.git",
    "data": f"https://store.invalid/train?token={BIRD}10&part=1",
    "judge": f"sk-proj-{BIRD}0000011",
    "repository": f"ghp_{BIRD}00000012",
    "alerts": f"xoxb-13-{BIRD}",
    "hooks": f"https://hooks.slack.com/services/T0/B0/{BIRD}14",
    "deploy": f"-----BEGIN PRIVATE KEY-----\n{BIRD}15\n-----END PRIVATE KEY-----",
    "command": f"python train.py --api-key {BIRD}16 --lr 3e-4",
    "args": ["--password", f"{BIRD}17", "--epochs", "3"],
    "tokenizer": "gpt2",
    "max_tokens": 2048,
}
PRINTED = [
    f"exporting HF_TOKEN={BIRD}18",
    "Traceback (most recent call last):",
    '  File "train.py", line 3, in <module>',
    f"RuntimeError: CUDA error: 401 for postgres://bob:{BIRD}19@db/x with sk-{BIRD}0000020 at step 99",
]
FORMS = "terminal json jsonl html markdown sarif"


@pytest.fixture
def run(tmp_path):
    """A run whose loss becomes NaN, with all canaries in the log, in a file beside it, and on its console."""
    directory = tmp_path / "runs" / "a"
    directory.mkdir(parents=True)
    rows = [{"step": step, "loss": 1.0 if step < 50 else float("nan")} for step in range(100)]
    lines = [json.dumps({"config": SETTINGS}), *map(json.dumps, rows)]
    (directory / "metrics.jsonl").write_text("\n".join(lines) + "\n")
    (directory / "args.json").write_text(
        json.dumps({f"other.{key}": value for key, value in SETTINGS.items()})
    )
    (directory / "train.log").write_text("\n".join(PRINTED) + "\n")
    shutil.copytree(directory, tmp_path / "copy")
    return directory


@pytest.fixture
def receivers(tmp_path, monkeypatch):
    """A configuration with a sink of each kind that can be had here, and what each gets."""
    monkeypatch.setenv("KEY", "0" * 32)
    with ExitStack() as stack:
        http = {kind: stack.enter_context(Receiver()) for kind in ("webhook", "slack", "alertmanager")}
        http["pagerduty"] = stack.enter_context(Receiver())
        command = f'type = "command"\ncommand = ["tee", "-a", "{tmp_path / "told.json"}"]'
        tables = [command, 'type = "terminal"']
        for kind, receiver in http.items():
            key = 'routing_key_env = "KEY"\n' if kind == "pagerduty" else ""
            tables.append(f'type = "{kind}"\n{key}url = "{receiver.url}"')
        sinks = [f'[[sinks]]\n{table}\nmin_severity = "info"\nfirst_look = "all"\n' for table in tables]
        (tmp_path / "sentinel.toml").write_text('paths = ["runs"]\n' + "".join(sinks))
        yield http


def outputs(sentinel, run):
    """What each form of output shows, by its command line."""
    lines = [f"replay runs --format {form}" for form in FORMS.split()]
    lines += ["runs runs --details", "runs runs --format json", "runs runs --siblings"]
    lines += [str(run.parent), f"{run.parent} --format json", "replay runs --compare"]
    lines += ["compare runs copy", "compare runs copy --format json"]
    lines += ["wait runs", "wait runs --format json"]
    lines += ["watch --once", "status", "status --format json", "archive judge runs --out judged"]
    lines += ["archive report judged", "archive report judged --format markdown"]
    for line in lines:
        done = sentinel(*line.split())
        yield line, done.out + done.err
    (incident, *_) = json.loads(sentinel("status", "--format", "json").out)["incidents"]
    for words in (["show", incident["id"]], ["show", incident["id"], "--format", "json"]):
        yield " ".join(words), "".join(map(str, sentinel(*words)))
    report = library.replay(run.parent)
    yield "a report as an object", json.dumps(report.to_dict()) + repr(report.story) + report._repr_html_()


def messages(run, receivers):
    """What each sink got."""
    yield "the command of a sink", (run.parents[1] / "told.json").read_text()
    for kind, receiver in receivers.items():
        yield f"a sink of type {kind}", "".join(request.body.decode() for request in receiver.received)


def answers(run, state):
    """What each tool answers an agent, judging by itself and from a state."""
    for asked in (
        Answers(Config(), [run.parent, run.parents[1] / "copy"], time.time),
        Answers(Config(state_dir=state), [], time.time),
    ):
        name = str(run / "metrics.jsonl")
        told = [asked.runs("*"), asked.incidents("*"), asked.diagnosis(name), asked.settings(name)]
        told += [asked.printed(name, 50), asked.points(name, "loss", 10), asked.siblings(name)]
        told += [asked.compared(name, str(run.parents[1] / "copy" / "metrics.jsonl"))] if asked.paths else []
        for number, answer in enumerate(told):
            yield f"answer {number} to an agent, {asked.paths}", orjson.dumps(answer).decode()


def pages(state):
    """The live pages."""
    with serving(state) as (client, _):
        client.headers["Authorization"] = f"Bearer {TOKEN}"
        fleet = client.get("/").text
        yield "the live page", fleet
        (path, *_) = re.findall(r'href="(/runs/\w+)"', fleet)
        for place in (path, f"{path}/markdown", f"/compare?run={path[6:]}", f"/report?run={path[6:]}"):
            yield place, client.get(place).text


def test_no_form_of_output_shows_a_secret(sentinel, run, receivers):
    whole = SETTINGS | {"printed": PRINTED}
    assert json.dumps(whole).casefold().count(BIRD.casefold()) == 20 + 1  # the id of a key is told apart
    shown = dict(outputs(sentinel, run))
    (state,) = (file.parent for file in run.parents[1].rglob("sentinel.sqlite"))
    shown |= dict(messages(run, receivers)) | dict(answers(run, state)) | dict(pages(state))
    assert len(shown) >= 50
    assert [form for form, text in shown.items() if len(text) < 50] == []
    assert {form for form, text in shown.items() if BIRD.casefold() in text.casefold()} == set()
    listed = json.loads(shown["runs runs --format json"])["runs"][0]["config"]
    settings = {name: setting["value"] for name, setting in listed.items()}
    assert settings["tokenizer"] == "gpt2"
    assert settings["hf_token"] == "***"
    assert settings["command"] == "python train.py --api-key *** --lr 3e-4"
    assert "2048" in shown["replay runs --format html"]
    assert "RuntimeError: CUDA error" in shown["replay runs --format terminal"]
