"""Which detectors judged nothing of a run, and why."""

import orjson

from sentinel.replays.coverage import skipped

LOOKED = {("a", "too few points"): 3, ("a", ""): 1, ("b", "no restart"): 2, ("b", "too few points"): 5}


def test_a_detector_that_judged_no_row_says_why_the_most_frequent_reason_first():
    found = skipped(LOOKED, ["a", "b"])
    assert found == {"b": {"too few points": 5, "no restart": 2}}
    assert [*found["b"]] == ["too few points", "no restart"]


def test_a_detector_that_saw_no_row_says_so():
    found = skipped(LOOKED, ["never"])
    assert orjson.loads(orjson.dumps(found)) == {"never": {"no step with a number of each signal": 0}}
