import pytest

from sentinel.notifications.silences import silence
from sentinel.sources.identity import RunIdentity
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
