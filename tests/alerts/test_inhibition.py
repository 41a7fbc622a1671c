"""One incident a cause."""

import tomllib
from importlib.resources import files

import pytest

from detectors.discovery import all_detectors
from sentinel.alerts.inhibition import Rules, builtin_rules, parse_rules
from sentinel.alerts.lifecycle import Policy
from tests.alerts.timeline import book, rows, told

CAUSE, EFFECT = "loss-scale-collapse", "flat-loss-at-init"
DOCUMENT = tomllib.loads(files("sentinel.alerts").joinpath("inhibition.toml").read_text("utf-8"))


def fired(*lines, **options):
    """Detector and tag of everything that fired, with whether it is explained."""
    changes = book(**options).advance([v for line in lines for v in line])
    return [
        (c.incident.detector, c.incident.tag, c.incident.inhibited_by is not None)
        for c in changes
        if c.event == "firing"
    ]


def test_a_cause_explains_what_fires_while_it_is_open():
    assert fired(rows("cc", CAUSE), rows("....cc", EFFECT)) == [(CAUSE, "kl", False), (EFFECT, "kl", True)]


def test_of_two_at_the_same_point_the_cause_is_first():
    assert fired(rows("cc", EFFECT), rows("cc", CAUSE)) == [(CAUSE, "kl", False), (EFFECT, "kl", True)]


def test_what_fired_before_its_cause_stays():
    assert fired(rows("cc", EFFECT), rows("...cc", CAUSE)) == [(EFFECT, "kl", False), (CAUSE, "kl", False)]


def test_the_same_detector_on_another_tag_is_the_same_trouble():
    assert fired(rows("ww", tag="a"), rows("..ww", tag="b")) == [
        ("kl-blowup", "a", False),
        ("kl-blowup", "b", True),
    ]


def test_never_across_streams():
    assert (EFFECT, "kl", False) in fired(rows("cc", CAUSE, stream="a"), rows("...cc", EFFECT, stream="b"))


def test_unrelated_detectors_do_not_silence_each_other():
    assert fired(rows("cc", CAUSE), rows("...cc", "kl-blowup"))[1] == ("kl-blowup", "kl", False)


def test_worse_news_is_not_silenced():
    assert fired(rows("ww", CAUSE), rows("...cc", EFFECT))[1] == (EFFECT, "kl", False)


def test_a_preview_does_not_silence_what_is_stable():
    changes = book(CAUSE).advance(rows("cc", CAUSE) + rows("...cc", EFFECT))
    assert changes[1].incident.inhibited_by is None
    changes = book(CAUSE, EFFECT).advance(rows("cc", CAUSE) + rows("...cc", EFFECT))
    assert changes[1].incident.inhibited_by == changes[0].incident.id


def test_what_gets_worse_than_its_cause_is_heard():
    changes = book().advance(rows("wwwwww", CAUSE) + rows("..wwcc", EFFECT))
    assert told(changes) == ["firing warning @10", "firing warning @30", "escalated critical @50"]
    assert changes[1].incident.inhibited_by is not None
    assert changes[2].incident.inhibited_by is None


def test_who_was_told_goes_on_hearing():
    changes = book().advance(rows("wwwwcc", EFFECT) + rows("..cccc", CAUSE))
    assert [c.incident.inhibited_by for c in changes] == [None, None, None]


@pytest.mark.parametrize(
    ("effect", "events"),
    [
        ("..cccc", ["firing", "firing", "resolved"]),  # found twice since: its end may just be late
        ("..cc...", ["firing", "firing", "resolved", "resolved"]),
        ("..ccccc", ["firing", "firing", "resolved", "firing"]),
    ],
)
def test_what_outlives_its_cause_by_a_clear_is_heard_after_all(effect, events):
    changes = book(policy=Policy(hold=2, clear=3)).advance(rows("cc...", CAUSE) + rows(effect, EFFECT))
    assert [c.event for c in changes] == events
    assert changes[1].incident.inhibited_by == changes[0].incident.id
    if events[-1] == "firing":
        assert changes[-1].incident.inhibited_by is None
        assert changes[-1].incident.id == changes[1].incident.id


def test_what_outlives_one_cause_may_have_another():
    ours = book(policy=Policy(hold=2, clear=3), rules=Rules({CAUSE: [EFFECT], "kl-blowup": [EFFECT]}))
    changes = ours.advance(rows("cc...", CAUSE) + rows("..cccccccc", EFFECT) + rows("...ccccccc"))
    assert [c.event for c in changes] == ["firing", "firing", "resolved", "firing"]
    effect, other = ours.open()
    assert effect.inhibited_by == other.id


def test_an_explained_incident_explains_nothing():
    rules = Rules({CAUSE: [EFFECT], EFFECT: ["kl-blowup"]})
    assert fired(rows("cc", CAUSE), rows("..cc", EFFECT), rows("....cc"), rules=rules) == [
        (CAUSE, "kl", False),
        (EFFECT, "kl", True),
        ("kl-blowup", "kl", False),
    ]


def test_a_circle_is_refused():
    with pytest.raises(ValueError, match=r"circle: .*a.* -> "):
        Rules({"a": ["b"], "b": ["a"]})


def test_rules_name_detectors_and_say_why():
    named = {d for rule in DOCUMENT["rule"] for d in (rule["cause"], *rule["silences"])}
    assert named <= set(all_detectors())
    assert all(rule["because"] for rule in DOCUMENT["rule"])


def test_causes_rank_before_effects():
    rules = builtin_rules()
    for rule in DOCUMENT["rule"]:
        assert all(rules.rank(rule["cause"]) < rules.rank(effect) for effect in rule["silences"])


def test_several_rules_may_share_a_cause():
    document = {"rule": [{"cause": "a", "silences": ["b"]}, {"cause": "a", "silences": ["c"]}]}
    rules = parse_rules(document)
    assert rules.rank("a") < min(rules.rank("b"), rules.rank("c"))
