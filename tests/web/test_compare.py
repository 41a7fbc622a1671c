"""What a comparison of runs says without a browser; `tests/browser/test_live.py` draws it."""

import json
import re

import pytest

from tests.web.conftest import log
from tests.web.test_pages import events, key_of

pytestmark = pytest.mark.slow  # each starts a server


def test_a_comparison_has_the_curves_of_its_runs_with_their_times(client, runs):
    keys = [key_of(client, name) for name in ("sick", "well")]
    text = client.get("/compare", params={"runs": ",".join([*keys, "0000", keys[0]])}).text
    assert "2 runs compared" in text
    sick, well = map(json.loads, re.findall(r'class="compared">(.*)</script>', text))
    ((steps, values, times),) = well["curves"]["train/grad_norm"]
    assert len(steps) == len(values) == len(times)
    assert (well["signals"]["loss"], well["planned"]) == (["train/loss"], None)
    assert [mark["onset"] for mark in sick["marks"] if mark["tag"] == "train/loss"] == [100]


def test_a_comparison_hears_of_each_of_its_runs(client, runs):
    keys = ",".join(key_of(client, name) for name in ("sick", "well"))
    since = re.search(r"since=(\d+)", client.get("/compare", params={"runs": keys}).text)[1]
    with client.stream("GET", "/compare/events", params={"runs": keys, "since": since}) as answer:
        log(runs / "well", range(200, 260))
        assert next(events(answer)) > int(since)


def test_a_comparison_of_nothing_says_what_to_do(client):
    assert "Pick two runs or more" in client.get("/compare").text
