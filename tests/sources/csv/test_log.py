"""CSV files as loggers write them: cells, headers that change, files that are written anew."""

import math
import tempfile
from pathlib import Path

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from sentinel.sources.csv import header as csv_header
from sentinel.sources.csv import rows as csv_rows
from sentinel.sources.csv.file import CsvLog
from sentinel.sources.csv.header import read_header
from sentinel.sources.csv.rows import _read_each, read_rows
from sentinel.sources.discovery import discover
from tests.sources.reader import Reader

FIXTURES = Path(__file__).parents[1] / "fixtures" / "csv"
NUMBERS = st.sampled_from(["0.5", "-1e-3", "7", "nan", "-inf", "Infinity", "1e400"])
JUNK = st.one_of(
    st.binary(max_size=8), st.sampled_from([b",", b'"', b"\r\n", b"\t", b"1e999", b"#", b"9" * 99])
)
CELLS = st.one_of(NUMBERS, st.sampled_from(["", "text", " 2 ", '"3"', '"a,b"', "1_0", "0x1", "-", "9\t"]))


def read(tmp_path, text, name="metrics.csv"):
    path = tmp_path / name
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return Reader(tmp_path).poll()


@pytest.mark.parametrize(
    "text",
    [
        "step,loss,lr\n1,2.5,\n2,,0.1\n",
        "\ufeffstep,loss,lr\r\n1,2.5,\r\n2,,0.1\r\n",
        '"step","loss","lr"\n"1","2.5",""\n2,"","0.1"\n',
        "  step,   loss,  lr\n     1,    2.5,    \n     2,    ,   0.1 \n",
        "step\tloss\tlr\n1\t2.5\t\n2\t\t0.1\n",
        "step;loss;lr\n1;2.5;\n2;;0.1\n",
        "Step,loss,lr\n\n1,2.5,\n\n2,,0.1\n",
        "# step,loss,lr\n1,2.5,none\n2,n/a,0.1\n",
        ",step,loss,lr\n0,1,2.5,\n1,2,,0.1\n",
    ],
    ids=["plain", "windows", "quoted", "padded", "tabs", "semicolons", "blank", "text", "index"],
)
def test_however_it_is_written(tmp_path, text):
    reader = read(tmp_path, text)
    assert reader.points == [("loss", 1, "2.5"), ("lr", 2, "0.1")]
    assert not reader.read_issues


@pytest.mark.parametrize(
    ("header", "row"),
    [("step,metric,value", "{n},{part}_loss,0.{n}"), ("epoch,split,metric,value", "{n},{part},loss,0.{n}")],
)
def test_the_names_of_a_long_table_are_in_its_rows(tmp_path, header, row):
    rows = [row.format(n=n, part=part) for n in range(1, 9) for part in ("train", "val")]
    points = read(tmp_path, "\n".join([header, *rows, ""])).points
    names = {(tag.replace("_", " "), step, value) for tag, step, value in points}
    assert names == {(f"{part} loss", n, f"0.{n}") for n in range(1, 9) for part in ("train", "val")}


@pytest.mark.parametrize(
    ("header", "rows", "steps"),
    [
        ("global_step,epoch,loss", ["5,0,1", ",0,1", "9,1,1"], [5, 5, 9]),
        ("loss,time/total_timesteps,time/iterations", ["1,128,1", "1,256,2"], [128, 256]),
        ("Epoch,LossPi,TotalEnvInteracts", ["0,1,4000", "1,1,8000"], [4000, 8000]),
        ("epoch,loss", ["0,1", "1,1", "2,1"], [0, 1, 2]),
        ("epoch,loss", ["0,1", "0.5,1", "1,1"], [0, 2, 3]),
        (",loss", ["0,1", "1,1"], [0, 1]),
        (",loss", ["10,1", "20,1", "0,1", "10,1"], [10, 20, 21, 22]),
        (",loss", ["0,1", "0,1", "0,1"], [0, 1, 2]),
        (",epoch,loss", ["0,7,1", "1,8,1"], [7, 8]),
        ("loss", ["1", "2"], [1, 2]),
        ("episode,reward,steps", ["0,1,20", "1,1,9"], [0, 1]),
        ("step,loss", ["3,1", "4,1", "1,1"], [3, 4, 1]),
        ("epoch,iteration,loss", ["0,5,1", "0,9,1", "1,5,1", "1,9,1", "2,5,1"], [5, 9, 14, 18, 23]),
        ("Episode,Step,Reward", ["1,1,0", "1,2,0", "2,1,0", ",2,0", "3,1,0"], [1, 2, 3, 4, 5]),
        ("epoch,episode,reward", ["1,1,0", "1,2,0", "2,1,0", "2,2,0"], [1, 2, 3, 4]),
        ("episode,epoch,loss", ["1,1,0", "1,2,0", "2,1,0"], [1, 2]),
        ("Epohc,iteration,loss", ["0,5,1", "0,9,1", "1,5,1", "1,9,1", "2,5,1"], [5, 9, 14, 18, 23]),
        ("seed,iteration,loss", ["0,5,1", "0,9,1", "1,5,1", "1,9,1"], [5, 9, 5, 9]),
        ("epoch,batch,loss", ["0,0,1", "0,1,1", "0,2,1", "1,0,1", "1,1,1", "1,2,1"], [0, 1, 2, 3, 4]),
        ("epoch,split,step,loss", ["0,train,5,1", "0,train,9,1", "0,val,0,1", "1,train,4,1"], [5, 9, 13]),
        ("epoch,split,step,loss", ["0,val,5,1", "0,val,9,1", "1,val,5,1"], [5, 9, 14]),
        ("epoch,batch,loss", ["1,32,1", "2,32,1", "3,32,1"], [32, 64, 96]),
        ("step,batch,loss", ["1,32,1", "2,32,1"], [1, 2]),
        ("batch,loss", ["32,1", "32,1"], [1, 2]),
        ("epoch,step,loss", ["0,5,1", "1,10,1", "2,15,1", "1,10,1"], [5, 10, 15, 10]),
        ("epoch,step,loss", ["1,1,1", "1,2,1", "2,1,1", "1,1,1", "1,2,1", "2,1,1"], [1, 2, 3, 1, 2, 3]),
    ],
)
def test_what_counts_the_steps(tmp_path, header, rows, steps):
    reader = read(tmp_path, "\n".join([header, *rows, ""]))
    assert list(dict.fromkeys(step for _, step, _ in reader.points)) == list(dict.fromkeys(steps))
    assert Reader(tmp_path).poll(limit=1).points == reader.points


@pytest.mark.parametrize(
    ("cells", "times"),
    [
        (["2024-10-20 15:37:23", "2024-10-20T15:37:24+00:00"], [1729438643, 1729438644]),
        (["1729438643", "1729438644000"], [1729438643, 1729438644]),
        (["", "soon"], [math.nan, math.nan]),
    ],
)
def test_times(tmp_path, cells, times):
    reader = read(tmp_path, f"Timestamp,step,loss\n{cells[0]},1,2\n{cells[1]},2,2\n")
    assert reader.points == [("loss", 1, "2.0"), ("loss", 2, "2.0")]
    assert np.array_equal(reader.times, times, equal_nan=True)


def test_a_duration_is_a_point(tmp_path):
    reader = read(tmp_path, "epoch,time,train/loss\n1,14.5,3\n", "results.csv")
    assert reader.points == [("epoch", 1, "1.0"), ("time", 1, "14.5"), ("train/loss", 1, "3.0")]


def test_a_monitor_tells_the_time_by_its_start(tmp_path):
    reader = read(tmp_path, '# {"t_start": 1700000000.5, "env_id": "A-v0"}\nr,l,t\n7,9,2\n', "0.monitor.csv")
    assert reader.points == [("r", 1, "7.0"), ("l", 1, "9.0")]
    assert reader.times == [1700000002.5] * 2


def test_broken_lines_are_told_of_and_skipped(tmp_path):
    lines = ["1,2,3", "2,2", "3,2,3,4", "soon,2,3", "a,b,c", '5,"2,3', "6,2,3", "7,2", "8,2,3"]
    reader = read(tmp_path, "\n".join(["step,loss,lr", *lines, ""]))
    assert [point[1] for point in reader.points] == [1, 1, 6, 6, 8, 8]
    where = [complaint.removeprefix(f"{tmp_path}/metrics.csv at ") for complaint in reader.read_issues]
    assert where == [
        "line 3: has 2 cells where the header has 3 and was skipped",
        "line 4: has 4 cells where the header has 3 and was skipped",
        "line 5: has a step that is no number and was skipped",
        "line 6: has no number and was skipped",
        "line 7: has 0 cells where the header has 3 and was skipped; more like it are skipped silently",
    ]


def test_a_header_that_comes_again(tmp_path):
    reader = read(tmp_path, "step,loss\n1,3\nstep,loss\n1,2\nlr,step,loss\n0.1,2,1\n")
    assert reader.points == [("loss", 1, "3.0"), ("loss", 1, "2.0"), ("lr", 2, "0.1"), ("loss", 2, "1.0")]
    assert not reader.read_issues


@pytest.mark.slow
@pytest.mark.parametrize("in_place", [True, False])
def test_further_columns_are_no_restart(tmp_path, in_place):
    """As Lightning and Stable-Baselines do it, seen at each moment of the writing."""
    path = tmp_path / "metrics.csv"
    loss = "train/a_rather_long_name_so_that_the_header_is_longer_than_what_is_looked_at_first"
    path.write_text("".join([f"{loss},step\n", *(f"0.{i},{i}\n" for i in range(2000))]))
    reader = Reader(tmp_path).poll()
    before = list(reader.points)
    assert len(before) == 2000
    old = path.read_bytes()
    new = "".join([f"{loss},step,val\n", *(f"0.{i},{i},\n" for i in range(2000)), "0.5,2000,7\n"]).encode()
    for end in range(0, len(new), 4096):
        path.write_bytes(new[:end] + (old[end:] if in_place else b""))
        assert reader.poll().points == before
    path.write_bytes(new)
    assert reader.poll().points == [*before, (loss, 2000, "0.5"), ("val", 2000, "7.0")]
    assert not reader.restarts
    assert not reader.read_issues


@pytest.mark.parametrize("rows", [3, 5, 40])
def test_another_training_with_the_same_beginning(tmp_path, rows):
    first = ["step,loss", *(f"{i},{4 - i / 4}" for i in range(10)), ""]
    other = ["step,loss", "0,4", *(f"{i},3" for i in range(1, rows)), ""]
    reader = read(tmp_path, "\n".join(first))
    (tmp_path / "metrics.csv").write_text("\n".join(other))
    reader.poll()
    assert reader.restarts == 1
    assert [p[1] for p in reader.points[10:]] == list(range(rows))


def test_a_file_saved_anew_under_another_inode_goes_on(tmp_path):
    reader = read(tmp_path, "step,loss\n1,3\n2,2\n")
    (tmp_path / "new").write_text("step,loss\n1,3\n2,2\n3,1\n")
    (tmp_path / "new").replace(tmp_path / "metrics.csv")
    assert reader.poll().points == [("loss", 1, "3.0"), ("loss", 2, "2.0"), ("loss", 3, "1.0")]
    assert not reader.restarts


@pytest.mark.slow
def test_a_line_that_never_ends(tmp_path):
    reader = read(tmp_path, b"step,loss\n1,2\n" + b"9" * (5 << 20))
    assert len(reader.points) == 1
    assert len(reader.read_issues) == 1
    assert reader.poll().read_issues == reader.read_issues


def test_which_files_count(tmp_path):
    contents = {
        "yes/metrics.csv": "step,a\n1,2\n",
        "yes/progress.csv": "time/total_timesteps,rollout/x\n1,2\n",
        "yes/progress.txt": "Epoch\tAverageEpRet\n0\t1\n",
        "yes/results.csv": "   epoch,  train/box_loss\n   1,  2\n",
        "yes/summary.csv": "epoch,train_loss,eval_top1\n0,1,2\n",
        "yes/0.monitor.csv": '#{"t_start": 1}\nr,l,t\n1.0,2,3\n',
        "yes/my_training_log.csv": "epoch,loss\n0,1\n",
        "yes/history.csv": ",loss,val_loss\n0,1,2\n",
        "yes/dqn_metrics.csv": "Timestamp,Timestep,Loss\n2024-10-20 15:37:23,1,0\n",
        "yes/sub/progress.csv": "episode_reward,frames_seen\n0.5,100\n",
        "yes/rewards.csv": "Episode Reward,length\n0.5,100\n",
        "yes/loss.csv": "loss\n0.5\n",
        "yes/train_log.txt": "Step\tTraining Loss\n10\t0.5\n",
        "yes/training.log": "epoch,accuracy,loss\n0,0.5,1\n",
        "yes/wandb_export_2024-01-01.csv": '"Step","calm-sky-7 - loss"\n"1","0.5"\n',
        "no/catalog.csv": "id,name,price\n1,a,2\n",
        "no/train.csv": "PassengerId,Survived,Age\n1,0,22\n",
        "no/training_data.csv": "text,label\nstep by step,1\n",
        "no/results_of_models.csv": "model,epoch,accuracy\nresnet,90,0.7\n",
        "yes/seed7.csv": "step,loss\n1,2\n2,1\n",
        "yes/baseline.txt": "epoch\tval_acc\n1\t0.2\n2\t0.3\n",
        "yes/PPO_3.csv": "Wall time,Step,Value\n1729438643.5,10,0.5\n",
        "yes/training.csv": "val_loss,val_accuracy,loss,accuracy\n0.5,0.5,0.5,0.5\n0.4,0.5,0.4,0.5\n",
        "yes/seed_7.csv": "train_loss,val_loss\n0.5,0.6\n0.4,0.5\n",
        "yes/episodes_logs.csv": "episode_id,algorithm,total_reward\n42,random,-5.5\n43,random,7\n",
        "no/results_of_all.csv": "loss,accuracy\n0.5,0.9\n",
        "no/prices.csv": "step,price\n1,2\n2,3\n",
        "no/frame.csv": ",loss,accuracy\n0,1,2\n1,1,2\n",
        "no/questions.csv": "step,f1\n3,0.5\n1,0.4\n1,0.2\n",
        "no/torn/metrics.csv": "step,lo",
        "no/header/metrics.csv": "step,loss\n",
        "no/empty/metrics.csv": "",
        "no/bytes/metrics.csv": "\x00\x01\n\x02",
    }
    for name, content in contents.items():
        path = tmp_path / name.partition("/")[2]
        path.parent.mkdir(exist_ok=True)
        path.write_text(content)
    found = {str(run.path.relative_to(tmp_path)) for run in discover([tmp_path]).runs}
    assert found == {name.partition("/")[2] for name in contents if name.startswith("yes/")}


@pytest.mark.parametrize(
    ("name", "text", "points"),
    [
        (
            "run-a_1-tag-train_loss.csv",
            "Wall time,Step,Value\n1729438643.5,10,0.5\n",
            [("train_loss", 10, "0.5")],
        ),
        (
            "wandb_export_2024-01-01T00_00_00.000+01_00.csv",
            '"Step","calm-sky-7 - loss","calm-sky-7 - loss__MIN"\n"10","0.5","0.25"\n',
            [("loss", 10, "0.5"), ("loss__MIN", 10, "0.25")],
        ),
        (
            "wandb_export_2024-01-01T00_00_00.000+01_00.csv",
            '"Step","calm-sky-7 - loss","red-sun-8 - loss"\n"10","0.5",""\n',
            [("calm-sky-7 - loss", 10, "0.5")],
        ),
    ],
)
def test_exports_have_the_tags_of_the_log(tmp_path, name, text, points):
    assert read(tmp_path, text, name).points == points


@pytest.mark.parametrize(
    ("path", "tag", "step", "count"),
    [
        ("lightning/metrics.csv", "val_loss", 119, 84),
        ("stable-baselines/progress.csv", "train/approx_kl", 1280, 140),
        ("stable-baselines/monitor.csv", "r", 42, 84),
        ("keras/training.csv", "val_loss", 7, 40),
        ("keras/history.csv", "val_loss", 7, 32),
    ],
)
def test_logs_that_libraries_wrote(path, tag, step, count):
    reader = Reader(FIXTURES / path).poll()
    assert len(reader.points) == count
    assert (tag, step) in [point[:2] for point in reader.points]
    assert not reader.read_issues


@pytest.mark.slow
@given(
    st.lists(st.lists(CELLS, min_size=3, max_size=3), min_size=1, max_size=12),
    st.integers(1, 15),
    st.sampled_from(["", "1,2", "1,2,3,4", '"']),
)
def test_reading_at_once_is_reading_line_by_line(table, most, torn):
    header = read_header(b"step,loss,time\n")
    data = ("".join(",".join(row) + "\n" for row in table) + torn).encode()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(csv_rows, "_FEW_CELLS", 0)
        one = read_rows(data, most, header)
        other = _read_each(data, most, header)
    assert np.array_equal(one.logged, other.logged)
    assert np.array_equal(one.values, other.values, equal_nan=True)
    assert (one.lines, one.broken, one.times) == (other.lines, other.broken, other.times)


@pytest.mark.long
@settings(max_examples=60, deadline=None)
@given(st.data())
def test_chunking_changes_nothing_however_odd_the_content(data):
    lines = st.one_of(
        st.lists(CELLS, min_size=2, max_size=4).map(",".join),
        st.sampled_from(["step,loss,lr", "epoch,loss", "", "\r", '"', "0.5,1,1", "1,2,3"]),
    )
    first = data.draw(st.sampled_from(["step,loss,lr", "epoch,loss,lr", '"a\nb",epoch,loss']))
    whole = "\n".join([first, *data.draw(st.lists(lines, max_size=12)), ""]).encode()
    with tempfile.TemporaryDirectory() as scratch:
        path = Path(scratch, "metrics.csv")
        path.write_bytes(whole)
        expected = Reader(path.parent).poll()
        assume(expected.runs)  # what is no log as a whole is one as long as it has its header alone
        path.unlink()
        path.touch()
        reader = Reader(path.parent)
        cuts = sorted(data.draw(st.lists(st.integers(0, len(whole)), max_size=4)))
        for start, end in zip([0, *cuts], [*cuts, len(whole)], strict=True):
            with path.open("ab") as file:
                file.write(whole[start:end])
            reader.poll(data.draw(st.integers(1, 9)), data.draw(st.integers(0, 3)))
        reader.poll(limit=5)
        assert (reader.points, reader.read_issues) == (expected.points, expected.read_issues)


@pytest.mark.long
@settings(max_examples=100, deadline=None)
@given(st.data())
def test_mutated_files(data):
    logged = data.draw(st.sampled_from(sorted(FIXTURES.glob("*/*.csv"))))
    content = logged.read_bytes()
    for _ in range(data.draw(st.integers(1, 4))):
        start = data.draw(st.integers(0, len(content)))
        content = content[:start] + data.draw(JUNK) + content[start + data.draw(st.integers(0, 30)) :]
    with tempfile.TemporaryDirectory() as scratch:
        path = Path(scratch, logged.name)
        path.write_bytes(content)
        whole = Reader(path).poll()
        pieces = Reader(path).poll(limit=data.draw(st.integers(1, 9)))
        assert (pieces.points, pieces.times) == (whole.points, pytest.approx(whole.times, nan_ok=True))
        assert pieces.read_issues == whole.read_issues


def test_a_poll_reads_about_as_much_as_it_may(tmp_path):
    path = tmp_path / "metrics.csv"
    path.write_text("step,a,b\n" + "".join(f"{i},1,2\n" for i in range(1000)))
    batch = CsvLog(path).poll({}, 30)
    assert batch.more
    assert sum(chunk.value.size for chunk in batch.chunks) == 30


@pytest.mark.parametrize("rows", [3, 300])
def test_of_a_very_wide_file_the_first_columns_are_read(tmp_path, monkeypatch, rows):
    for module in (csv_header, csv_rows):
        monkeypatch.setattr(module, "MAX_COLUMNS", 4)
    path = tmp_path / "metrics.csv"
    path.write_text("step,loss,lr,a,b,c\n" + "".join(f"{i},0.5,0.1,1,2,3\n" for i in range(rows)))
    reader = Reader(tmp_path).poll()
    with path.open("a") as file:
        file.write(f"{rows},0.25,,1,2,3\n")
    tags = {tag for tag, _, _ in reader.points}
    assert tags == {"loss", "lr", "a"}
    assert reader.poll().points[-2:] == [("loss", rows, "0.25"), ("a", rows, "1.0")]
    problem = "has 6 columns; only the first 4 are read, so log fewer"
    assert reader.read_issues == [f"{path} at line 1: {problem}"]


@pytest.mark.parametrize("limit", [1, 2, 1000])
def test_steps_that_fall_are_the_lengths_of_episodes(tmp_path, limit):
    path = tmp_path / "progress.csv"
    path.write_text("steps,reward\n20,1\n31,2\n17,3\n45,4\n12,5\n")
    assert [step for _, step, _ in Reader(path).poll(limit).points] == [20, 31, 32, 33, 34]
    path.write_text("steps,reward\n20,1\n31,2\n57,3\n")
    assert [step for _, step, _ in Reader(path).poll(limit).points] == [20, 31, 57]


@pytest.mark.slow
@pytest.mark.parametrize("header", ["epoch,phase,loss,val_acc", "Phase,epoch,loss,val_acc"])
@pytest.mark.parametrize("limit", [2, 1000])
def test_a_column_tells_what_is_held_out(tmp_path, header, limit):
    path = tmp_path / "train_log.csv"
    rows = [(epoch, phase, f"{epoch / 8},0.5") for epoch in range(20) for phase in ("train", "Val")]
    cells = [f"{a},{b},{rest}" if header.startswith("e") else f"{b},{a},{rest}" for a, b, rest in rows]
    path.write_text("\n".join([header, *cells]) + "\n")
    assert [run.path for run in discover([tmp_path]).runs] == [path]
    points = Reader(path).poll(limit).points
    assert [point for point in points if "loss" in point[0]] == [
        ("loss" if phase == "train" else "val/loss", epoch, str(epoch / 8)) for epoch, phase, _ in rows
    ]
    assert {tag for tag, _, _ in points} == {"epoch", "loss", "val/loss", "val_acc"}


def test_settings_in_comments_above_the_header_are_no_rows(tmp_path):
    path = tmp_path / "dqn_log.csv"
    comments = "".join(
        f"# {name},{n + 1}\n" for n, name in enumerate(["seed", "lr", "gamma", "tau", "steps"])
    )
    rows = "".join(f"{n},lost,-2.5,0.9\n" for n in range(20))
    path.write_text(f"{comments}\nepisode,outcome,reward,epsilon\n{rows}")
    (run,) = discover([tmp_path]).runs
    assert run.path == path
    points = Reader(path).poll().points
    assert {tag for tag, _, _ in points} == {"reward", "epsilon"}
    assert len(points) == 40


@pytest.mark.parametrize("column", ["done_reason", "Outcome", "status", "terminated by"])
def test_how_an_episode_ended_names_no_series(tmp_path, column):
    path = tmp_path / "episodes.csv"
    endings = ["crashed"] * 300 + ["arrived", "crashed"] * 10
    path.write_text(f"episode,reward,{column}\n" + "".join(f"{n},-2.5,{e}\n" for n, e in enumerate(endings)))
    points = Reader(path).poll().points
    assert [(tag, step) for tag, step, _ in points] == [("reward", n) for n in range(320)]


@pytest.mark.parametrize("name", ["loss.csv", "run-1-tag-loss.csv"])
def test_a_column_of_values_has_the_name_of_the_file(tmp_path, name):
    (tmp_path / name).write_text("step,value\n1,0.5\n2,0.25\n")
    assert Reader(tmp_path).poll().points == [("loss", 1, "0.5"), ("loss", 2, "0.25")]


@pytest.mark.parametrize(
    ("name", "header", "tags"),
    [
        ("loss.csv", "epoch,train,val", ["epoch", "loss train", "loss val"]),
        ("losses.csv", "epoch,train,test", ["epoch", "losses train", "losses test"]),
        ("losses.csv", "epoch,train_total,val_total", ["epoch", "losses train_total", "losses val_total"]),
        ("loss_history.csv", "epoch,total,pde", ["epoch", "loss_history total", "pde"]),
        ("accuracy.csv", "step,Training,Validation", ["accuracy Training", "accuracy Validation"]),
        ("losses.csv", "epoch,train_loss,val_loss", ["epoch", "train_loss", "val_loss"]),
        ("metrics.csv", "epoch,loss,test", ["epoch", "loss", "test"]),
    ],
)
def test_columns_that_name_a_part_of_the_data_are_of_the_metric_that_the_file_names(
    tmp_path, name, header, tags
):
    """What else would `train` and `val` be in a file of losses?"""
    (tmp_path / name).write_text(header + "\n" + "".join(f"{row},0.5,0.25\n" for row in range(30)))
    tags_read = list(dict.fromkeys(tag for tag, _, _ in Reader(tmp_path).poll().points))
    assert sorted(tags_read) == sorted(tags)


@pytest.mark.parametrize("encoding", ["utf-16", "utf-16-be"])
def test_utf_16_is_read_while_it_grows_and_when_it_is_rewritten(tmp_path, encoding):
    path = tmp_path / "metrics.csv"
    rows = [(i, i / 8) for i in range(40)]
    data = ("step,損失\r\n" + "".join(f"{i},{loss}\r\n" for i, loss in rows)).encode(encoding)
    reader = Reader(path)
    written = 0
    for end in (1, 2, 30, 31, len(data) // 2 + 1, len(data)):
        with path.open("ab") as file:
            file.write(data[written:end])
        written = end
        reader.poll()
    assert reader.points == [("損失", step, str(loss)) for step, loss in rows]
    path.write_bytes(("step,損失,lr\r\n" + "".join(f"{i},{loss},\r\n" for i, loss in rows)).encode(encoding))
    assert reader.poll().points == [("損失", step, str(loss)) for step, loss in rows]
    path.write_text("step,loss\n1,0.5\n")
    assert reader.poll().poll().points[-1] == ("loss", 1, "0.5")
    assert not reader.read_issues


def test_a_console_that_begins_with_a_loss_above_an_empty_line_is_no_table(tmp_path):
    path = tmp_path / "train.log"
    path.write_text("".join(f"Epoch {n}: loss 0.{9 - n}\n\nTest accuracy: 0.{n}\n" for n in range(1, 6)))
    assert [run.format for run in discover([path]).runs] == ["console"]
    path.write_text("Epoch 1: loss 0.8\n\n\n")
    assert [run.format for run in discover([path]).runs] != ["csv"]


@pytest.mark.parametrize(
    ("name", "tag"),
    [
        *[("val_log.csv", "val/loss"), ("test_loss2.csv", "test/loss"), ("val_train_log.csv", "loss")],
        *[("train_log.csv", "loss"), ("train_error_rate.csv", "train/loss"), ("train_val_loss.csv", "loss")],
    ],
)
def test_the_metrics_of_a_file_are_of_the_part_of_the_data_that_its_name_tells(tmp_path, name, tag):
    reader = read(tmp_path, "epoch,loss,train_acc,lr\n1,3,0.5,0.1\n2,2,0.6,0.1\n", name)
    assert {point[0] for point in reader.points} == {"epoch", tag, "train_acc", "lr"}
