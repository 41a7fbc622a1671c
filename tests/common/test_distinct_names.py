from hypothesis import given
from hypothesis import strategies as st

from sentinel.common.distinct_names import distinct

STUDY = [
    f"outputs/llama-3-8b-grpo-with-format-reward/learning_rate_{rate}-group_size_8/seed_{seed}/logs/rank-0"
    for rate in ("1e-3", "3e-4")
    for seed in (0, 1)
]
names = st.lists(st.text("ab/_-1e", min_size=1, max_size=60), min_size=1, max_size=30)


def test_names_that_fit_stay_as_they_are():
    assert distinct(["a/long/name", "b"], 11) == ["a/long/name", "b"]


def test_runs_of_a_study_keep_the_words_in_which_they_differ():
    assert distinct(STUDY, 30) == [
        "…rate_1e-3-group_…8/seed_0/…",
        "…rate_1e-3-group_…8/seed_1/…",
        "…rate_3e-4-group_…8/seed_0/…",
        "…rate_3e-4-group_…8/seed_1/…",
    ]


def test_words_of_another_order_are_numbered_where_only_their_middle_differs():
    assert distinct(["a" * 50 + "x" + "b" * 50, "a" * 50 + "y" + "b" * 50], 12) == [
        "aaaa…bbbbb~1",
        "aaaa…bbbbb~2",
    ]


def test_a_single_path_keeps_its_end():
    assert distinct(["/home/me/projects/vision/runs/mnist/metrics.jsonl"], 26) == [
        "…runs/mnist/metrics.jsonl"
    ]
    assert distinct(["x" * 30], 12) == ["xxxxx…xxxxxx"]


@given(names, st.integers(12, 60))
def test_no_two_names_read_alike_and_none_is_too_long(written, most):
    short = distinct(written, most)
    assert max(map(len, short)) <= most
    assert len({*short}) == len({*written})
    assert [written.index(name) for name in written] == [short.index(name) for name in short]
