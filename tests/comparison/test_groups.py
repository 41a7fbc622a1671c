import pytest
from hypothesis import given
from hypothesis import strategies as st

from sentinel.comparison.groups import grouped

SETTINGS = st.dictionaries(st.sampled_from(["lr", "depth", "seed"]), st.sampled_from([1, 2]), max_size=3)


@pytest.mark.long
@given(st.lists(SETTINGS, max_size=7))
def test_a_pair_shares_a_group_if_one_setting_beside_the_seed_tells_it_apart(configs):
    grouped_pairs = {
        (group.setting, frozenset((one, other)))
        for group in grouped(configs)
        if not group.is_by_seed
        for value, runs in group.arms.items()
        for one in runs
        for other_value, others in group.arms.items()
        if other_value != value
        for other in others
    }
    expected = set()
    for one, mine in enumerate(configs):
        for other, theirs in enumerate(configs[:one]):
            differ = [n for n in ("lr", "depth") if mine.get(n) != theirs.get(n)]
            known = all(set(settings) - {"seed"} for settings in (mine, theirs))
            if len(differ) == 1 and known:
                expected.add((differ[0], frozenset((one, other))))
    assert grouped_pairs == expected


def test_runs_that_differ_in_the_seed_alone_are_a_group_where_nothing_else_compares_them():
    base = {"lr": 0.1, "seed": 0}
    seeds = [base, base | {"seed": 1}, base | {"seed": 2}]
    (group,) = grouped(seeds)
    assert group.is_by_seed
    assert group.arms == {"seed=0": [0], "seed=1": [1], "seed=2": [2]}
    (group,) = grouped([*seeds, base | {"lr": 0.2}])
    assert (group.setting, group.arms) == ("lr", {"0.1": [0, 1, 2], "0.2": [3]})


def test_names_places_and_times_do_not_tell_runs_apart():
    runs = [
        {
            "lr": lr,
            "output_dir": f"out/{lr}",
            "run_name": f"run {lr}",
            "started": 1.7e9 + lr,
            "_wandb.cli": lr,
        }
        for lr in (0.1, 0.2)
    ]
    (group,) = grouped(runs)
    assert (group.setting, group.arms) == ("lr", {"0.1": [0], "0.2": [1]})


def test_values_are_in_order_of_size():
    (group,) = grouped([{"lr": 1e-2, "b": 1}, {"lr": 2e-05, "b": 1}, {"b": 1}])
    assert list(group.arms) == ["2e-05", "0.01", "not stated"]
