"""The picture of the signals around an incident."""

import base64
import io
import json

import pytest
from matplotlib import image
from msgspec.structs import replace

from sentinel.common.errors import ConfigError
from sentinel.config.file import Config
from sentinel.series.excerpt import Excerpt
from sentinel.sinks import plot
from sentinel.sinks.apprise import AppriseConfig
from sentinel.sinks.plot import png
from sentinel.sinks.slack_bot import SlackBotConfig
from sentinel.sources.identity import RunIdentity
from tests.sinks import receiver as rx
from tests.sinks.samples import INCIDENT, NOTIFICATION, digest

pytestmark = pytest.mark.slow  # they draw

NOW = 1_767_230_000.0
STEPS = list(range(0, 640, 10))
KL = Excerpt(
    label="KL",
    tag="train/kl",
    step=STEPS,
    mean=[0.04 if step < 400 else 0.04 + (step - 400) / 60 for step in STEPS],
    low=[0.02] * 64,
    high=[4.0 if step > 400 else 0.1 for step in STEPS],
    last_step=list(range(430, 640)),
    last=[(step - 400) / 60 for step in range(430, 640)],
)
REWARD = replace(KL, label="reward", tag="", low=[], high=[], mean=[None, *[0.3] * 63], last=[None] * 210)
PLOTTED = replace(NOTIFICATION, excerpts=[KL, REWARD])


def size(picture):
    return image.imread(io.BytesIO(picture)).shape[:2]


@pytest.mark.long
def test_each_signal_has_a_panel():
    assert size(png(PLOTTED)) == (580, 800)
    assert size(png(replace(PLOTTED, excerpts=[KL]))) == (405, 800)


def test_without_signals_there_is_no_picture():
    assert png(NOTIFICATION) is None
    assert png(digest(3)) is None


@pytest.mark.parametrize("text", ["$\\frac{", "日本\x1b[2J\u202e", "_a^b_", "", "x" * 5000])
def test_text_from_a_run_is_drawn_literally(text):
    hostile = replace(
        PLOTTED,
        incident=INCIDENT.replace(summary=text),
        run=RunIdentity(run=text),
        excerpts=[replace(KL, tag=text, label="KL")],
    )
    assert png(hostile)


@pytest.mark.parametrize("values", [[None] * 64, [0.0] * 64, [1e-300] * 63 + [1e300], [-1.0] * 64])
def test_any_values_can_be_drawn(values):
    assert png(
        replace(PLOTTED, excerpts=[replace(KL, mean=values, low=values, high=values, last=[None] * 210)])
    )


def test_slack_gets_the_picture_in_the_thread(receiver, monkeypatch):
    monkeypatch.setenv("TOKEN", "xoxb-t0ken")
    upload = f"http://127.0.0.1:{receiver.port}/upload"
    place = json.dumps({"ok": True, "upload_url": upload, "file_id": "F1"})
    receiver.answers.extend(
        [rx.status(200, '{"ok": true, "channel": "C1", "ts": "1.5"}'), rx.status(200, place)]
    )
    receiver.default = rx.status(200, '{"ok": true}')
    sink = SlackBotConfig(url=receiver.url, token_env="TOKEN", channel="#alerts", plots=True).open()
    assert sink.send(PLOTTED, NOW) == "C1 1.5"
    _, request, uploaded, completed = receiver.received
    assert request.path == "/hook/files.getUploadURLExternal"
    assert json.loads(request.body) == {"filename": "signals.png", "length": len(uploaded.body)}
    assert (uploaded.path, uploaded.headers["Authorization"]) == ("/upload", None)
    assert size(uploaded.body) == (580, 800)
    assert completed.path == "/hook/files.completeUploadExternal"
    assert json.loads(completed.body) == {
        "files": [{"id": "F1", "title": "signals.png"}],
        "channel_id": "C1",
        "thread_ts": "1.5",
    }


def test_a_picture_that_slack_refuses_is_logged_and_the_message_stays_delivered(
    receiver, monkeypatch, caplog
):
    monkeypatch.setenv("TOKEN", "xoxb-t0ken")
    receiver.answers.append(rx.status(200, '{"ok": true, "channel": "C1", "ts": "1.5"}'))
    receiver.default = rx.status(200, '{"ok": false, "error": "missing_scope"}')
    sink = SlackBotConfig(url=receiver.url, token_env="TOKEN", channel="#alerts", plots=True).open()
    assert sink.send(PLOTTED, NOW) == "C1 1.5"
    assert "the plot was not uploaded: Slack answered missing_scope: give the bot the scopes" in caplog.text


@pytest.mark.parametrize(("plots", "pictures"), [(True, 1), (False, 0)])
def test_apprise_gets_the_picture_from_memory(plots, pictures, receiver):
    AppriseConfig(url=f"json://127.0.0.1:{receiver.port}", plots=plots).open().send(PLOTTED, NOW)
    attached = json.loads(receiver.received[0].body)["attachments"]
    assert [size(base64.b64decode(one["base64"])) for one in attached] == [(580, 800)] * pictures


def test_plots_without_their_package_are_refused(monkeypatch):
    monkeypatch.setattr(plot, "find_spec", lambda _: None)
    with pytest.raises(ConfigError, match=r"install .*training-sentinel\[plots\]"):
        AppriseConfig(url="json://127.0.0.1", plots=True).open()


def test_only_sinks_that_show_plots_ask_for_curves():
    sinks = [{"type": "apprise", "url": "json://a", "plots": True}, {"type": "apprise", "url": "json://b"}]
    assert [sink.policy().plots for sink in Config(sinks=[*sinks, {"type": "terminal"}]).sinks] == [
        *(True, False, False)
    ]
