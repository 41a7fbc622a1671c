import math

import orjson
import pytest
from msgspec.structs import replace

from sentinel.common.errors import SentinelError
from sentinel.notifications.silences import silence
from sentinel.report import status, status_lines
from sentinel.report.status_body import document
from sentinel.sources.identity import RunIdentity
from sentinel.storage.store import Store
from tests.sinks.samples import INCIDENT

NOW = 1000.0
RUN = RunIdentity("grpo/seed-1", "/data/runs/grpo/seed-1")


@pytest.mark.parametrize(
    ("run", "detector", "expected"),
    [
        ("grpo/seed-1", "kl-blowup", True),
        ("grpo/*", "*", True),
        ("*", "kl-*", True),
        ("/data/runs/*", "*", True),  # the path does as well as the name
        ("grpo", "*", True),  # a directory stands for the runs below it
        ("grpo/seed-", "*", False),  # and the beginning of a name for nothing
        ("grpo/*", "entropy-collapse", False),
        ("GRPO/*", "*", False),
        ("grpo/seed-[2-9]", "*", False),
    ],
)
def test_globs(run, detector, expected):
    active = silence(run, detector, NOW + 60, "known", NOW)
    assert active.matches(RUN, INCIDENT, NOW) is expected


def test_it_ends():
    active = silence("*", "*", NOW + 60, "known", NOW)
    assert active.matches(RUN, INCIDENT, NOW + 59)
    assert not active.matches(RUN, INCIDENT, NOW + 60)


def test_it_may_be_about_one_incident():
    active = silence("*", "*", NOW + 60, "known", NOW, INCIDENT.id)
    assert active.matches(RUN, INCIDENT, NOW)
    assert not active.matches(RUN, INCIDENT.replace(id="another"), NOW)


@pytest.mark.parametrize("until", [NOW, NOW - 1, float("nan")])
def test_it_must_end_in_the_future(until):
    with pytest.raises(ValueError, match="future"):
        silence("*", "*", until, "", NOW)


def test_ids_tell_silences_apart():
    assert silence("a", "*", NOW + 1, "", NOW).id != silence("b", "*", NOW + 1, "", NOW).id


def test_what_a_silence_holds_is_bounded():
    with pytest.raises(SentinelError, match="a pattern may have 12,288 characters, and this one has 16,000"):
        silence("[" * 16_000, "*", NOW + 60, "known", NOW)
    with pytest.raises(SentinelError, match="a pattern may have"):
        silence("*", "[" * 16_000, NOW + 60, "known", NOW)
    with pytest.raises(SentinelError, match="a reason may have 2,000 characters, and this one has 10,000"):
        silence("*", "*", NOW + 60, "x" * 10_000, NOW)


def test_a_silence_for_ages_that_an_older_version_wrote_ends_nothing(tmp_path):
    with Store(tmp_path) as store:
        store.add_silence(replace(silence("*", "*", NOW + 60, "known", NOW), until=math.inf))
        content = status.status(store, tmp_path, NOW, lambda _: True)
    assert any("over 100 years" in str(line) for line in status_lines.lines(content))
    orjson.dumps(document(content))
