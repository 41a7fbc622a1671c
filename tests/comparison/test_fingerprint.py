import pytest
from hypothesis import given
from hypothesis import strategies as st

from sentinel.comparison.fingerprint import (
    Fingerprint,
    are_siblings,
    differences,
    differing,
    names_that_differ,
    sibling_groups,
)

SETTINGS = {"lr": 0.1, "width": 8, "depth": 2, "seed": 0, "output_dir": "/a", "run_name": "a"}


def of(tags=("loss",), framework=None, **settings):
    return Fingerprint.from_settings(framework, tags, SETTINGS | settings)


@pytest.mark.parametrize(
    ("other", "expected"),
    [
        (of(seed=1, output_dir="/b", run_name="b"), True),
        (of(lr=0.2, width=16), True),
        (of(lr=0.2, width=16, depth=3), False),
        (of(framework="trl"), False),
        (of(tags=("loss", "lr")), True),  # it has gone on for longer
        (of(tags=("reward",)), False),
        (Fingerprint.from_settings(None, ["loss"], {}), False),
    ],
)
def test_siblings_are_runs_of_one_program(other, expected):
    assert are_siblings(of(), other) == are_siblings(other, of()) == expected


def test_two_runs_without_settings_are_no_siblings():
    assert not are_siblings(
        Fingerprint.from_settings(None, ["loss"], {}), Fingerprint.from_settings(None, ["loss"], {"seed": 1})
    )


def test_what_differs_is_named_with_both_values():
    assert differences(of(), of(lr=0.2, beta=1)) == {"beta": ("not stated", "1"), "lr": ("0.1", "0.2")}


def test_a_group_has_the_runs_near_the_most_frequent_settings():
    runs = [of(depth=5, width=9, lr=1), of(seed=1), of(seed=2), of(lr=0.2), of(tags=["x"]), of(lr=1, width=9)]
    assert sibling_groups(runs) == [[1, 2, 3, 5]]
    assert differing(runs[run] for run in (1, 2, 3)) == {"lr": ["0.1", "0.2"]}
    assert names_that_differ(*(runs[run] for run in (1, 2, 3))) == {"lr"}


@pytest.mark.slow
@given(st.lists(st.builds(of, lr=st.integers(0, 3), width=st.integers(0, 3), depth=st.integers(0, 1))))
def test_each_run_is_in_one_group_at_most(runs):
    members = [run for group in sibling_groups(runs) for run in group]
    assert len(members) == len({*members})
