"""The runs of an archive are put together group by group, in memory that hardly grows with them."""

import json
import random
import tracemalloc

import msgspec
import pytest

from sentinel.archives.record import packed_record
from sentinel.archives.results import Results
from sentinel.notifications.decide import Reason
from sentinel.replays.replaying import replay
from sentinel.report import cost
from sentinel.report.json import document
from tests.archives.conftest import NOW, archived, as_json, config, records, reported, whole

pytestmark = pytest.mark.long  # each judges some dozens of runs

_BYTES_A_RUN = 2000  # a record of a run takes some dozens of kB


@pytest.fixture
def apart(tmp_path):
    """Trainings whose two logs lie in far directories, in another order there."""
    others = random.Random(1).sample(range(60), 60)
    for number, other in enumerate(others):
        rows = [{"step": i, "loss": 2.0 - i / 100} for i in range(60)]
        rows += [{"step": i, "loss": float("nan")} for i in range(60, 90)]
        out = tmp_path / "tree" / "out" / f"run-{number}"
        out.mkdir(parents=True)
        text = "".join(f"{row['step']},{row['loss']}\n" for row in rows)
        (out / "metrics.csv").write_text(f"step,loss\n{text}")
        log = tmp_path / "tree" / "logs" / f"job-{other}"
        log.mkdir(parents=True)
        told = [{"config": {"output_dir": str(out), "seed": number}}, *rows]
        (log / "metrics.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in told))
    return tmp_path / "tree"


def test_trainings_whose_logs_lie_far_from_one_another_are_told_as_in_one_replay(tmp_path, apart):
    expected = as_json(document(replay([apart], config(apart), lambda *_: None), NOW))
    found = reported(archived(tmp_path / "results", apart)[0])
    assert found == expected
    told = {one["reason"] for run in found["runs"] for i in run["incidents"] for one in i["notifications"]}
    assert Reason.TOLD_OF_ANOTHER_LOG in told


def test_memory_hardly_grows_with_the_number_of_runs(tmp_path, tree):
    first, _ = archived(tmp_path / "first", tree)
    alone = (msgspec.structs.replace(one, trace=None) for one in records(first))
    some = [packed_record(one) for one in alone]

    def peak(count):
        results = Results(tmp_path / f"{count}")
        runs = [some[n % len(some)].replace(b"/tree/", b"/%04d/" % n) for n in range(count)]
        keys = [f"{number:032}" for number in range(0, count, 64)]
        with results.writing():
            for key in keys:
                results.write(key, runs[int(key) : int(key) + 64])
            results.finish(keys, [], {}, [])
        del runs
        tracemalloc.start()
        assert cost.cost(whole(results)).verdict.startswith(f"{count:,} runs: ")
        most = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        return most

    peak(64)  # imports what is needed
    # both are more than what is at hand at any time
    few = peak(576)
    many = peak(1152)
    assert many - few < 576 * _BYTES_A_RUN
