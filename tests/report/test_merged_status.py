"""What several state directories hold, as one."""

from msgspec.structs import replace

from sentinel.calibration.calibration import PageSent
from sentinel.common.days import DAY_SECONDS
from sentinel.report.merged_status import joined
from sentinel.report.status import status
from sentinel.storage.store import Store, Update
from tests.sinks.samples import INCIDENT

NOW = 1.7e9


def state(place, runs, at=NOW, incidents=True):
    """What a state directory holds after a watch recorded these runs."""
    with Store(place) as store:
        for name in runs:
            one = INCIDENT.replace(id=f"{name}00", run=f"jsonl:/runs/{name}")
            store.commit([Update(one.run, f"/runs/{name}", "jsonl", b"", [one] if incidents else [])], at)
        return status(store, place, NOW)


def test_the_shares_of_a_tree_are_one_list(tmp_path):
    parts = {place: state(place, runs) for place, runs in ((tmp_path / "0", "ab"), (tmp_path / "1", "c"))}
    shown = joined(parts)
    assert {run.row.path for run in shown.runs} == {"/runs/a", "/runs/b", "/runs/c"}
    assert {incident.id for incident in shown.incidents} == {"a00", "b00", "c00"}
    assert shown.trouble == "no watch is running"
    assert joined({tmp_path / "0": parts[tmp_path / "0"]}) is parts[tmp_path / "0"]


def test_of_a_pair_each_run_is_told_once_as_the_later_record_has_it(tmp_path):
    behind = state(tmp_path / "0", "ab")
    ahead = state(tmp_path / "1", "ab", at=NOW + 1, incidents=False)
    for shown in (joined({tmp_path / "0": behind, tmp_path / "1": ahead}), joined({1: ahead, 0: behind})):
        assert [run.row.updated for run in shown.runs] == [NOW + 1, NOW + 1]
        assert not shown.incidents


def test_it_says_which_watch_does_not_run(tmp_path):
    runs, ended = (state(tmp_path / name, "a") for name in "01")
    shown = joined({tmp_path / "0": replace(runs, process="7"), tmp_path / "1": ended})
    assert shown.process == "7"
    assert shown.trouble == f"{tmp_path / '1'}: no watch is running"


def test_a_page_of_a_pair_counts_once_on_each_of_its_days(tmp_path):
    pages = [PageSent("a", "a00", "kl-blowup", "far", NOW + days * DAY_SECONDS, "") for days in (0, 0.001, 3)]
    one, other = (state(tmp_path / name, "a") for name in "01")
    shown = joined({0: replace(one, pages=pages[::2]), 1: replace(other, pages=pages[1:], useful=["a"])})
    assert len(shown.pages) == 2
    assert shown.useful == ["a"]
