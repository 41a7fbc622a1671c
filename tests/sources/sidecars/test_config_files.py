"""Settings in files beside a log: which files, whose conventions, and nothing that executes."""

import contextlib
import json
import os
import pickle
from datetime import date

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from sentinel.sources.base import Run
from sentinel.sources.readers.plain import MAX_KEYS, flat
from sentinel.sources.sidecars.config_files import ConfigFiles
from sentinel.sources.sidecars.plain_yaml import load


def read(path, format_="jsonl"):
    files, complaints = ConfigFiles(Run(path, format_, None)).read()
    return {file.name: dict(file.settings) for file in files}, [str(c) for c in complaints]


@pytest.fixture
def run(tmp_path):
    path = tmp_path / "project" / "out"
    path.mkdir(parents=True)
    return path


def write(path, text):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


@pytest.mark.parametrize(
    ("name", "text", "expected"),
    [
        ("args.json", '{"lr": 1e-3, "name": "x", "nested": {"a": [1, true, null]}}',
         {"lr": 1e-3, "name": "x", "nested.a.0": 1, "nested.a.1": True, "nested.a.2": None}),
        ("training_args.yaml", "max_steps: 500\n", {"max_steps": 500}),
        ("opt.yaml", "epochs: 300\n", {"epochs": 300}),
        ("adapter_config.json", '{"r": 16, "target_modules": ["q"]}',
         {"peft_config.r": 16, "peft_config.target_modules.0": "q"}),
        ("ds_config.json", '{"scheduler": {"params": {"warmup_num_steps": 10}}}',
         {"scheduler.params.warmup_num_steps": 10}),
        (".hydra/config.yaml", "trainer:\n  max_steps: 10\n", {"trainer.max_steps": 10}),
        ("../.hydra/config.yaml", "trainer:\n  max_steps: 10\n", {"trainer.max_steps": 10}),
        ("../torchtune_config.yaml", "lr_scheduler: {num_warmup_steps: 5}\n",
         {"lr_scheduler.num_warmup_steps": 5}),
        ("../configuration.yaml", "behaviors: {Ball: {max_steps: 5}}\n", {"behaviors.Ball.max_steps": 5}),
        ("hparams.yaml", "lr: 0.1\nobject: !!python/object:some.where.Thing\n  depth: 2\n",
         {"lr": 0.1, "object.depth": 2}),
        ("files/config.yaml",
         "_wandb:\n  value: {cli_version: x}\nwandb_version: 1\nlr:\n  desc: null\n  value: 0.1\n"
         "optim:\n  value: {name: adam}\n",
         {"lr": 0.1, "optim.name": "adam"}),
    ],
)  # fmt: skip
def test_what_frameworks_leave(run, name, text, expected):
    write(run / name, text)
    assert read(run) == ({name: expected}, [])


@pytest.mark.parametrize(
    ("text", "counts"),
    [
        ('{"epochs": 50}', True),
        ('{"train": {"learning_rate": 1e-4}}', True),
        ('{"hidden_size": 8}', False),
        ('{"model_type": "bert", "epochs": 50}', False),
    ],
)
def test_the_arguments_of_a_training_may_lie_where_others_describe_a_model(run, text, counts):
    write(run / "log.txt", "")
    write(run / "config.json", text)
    found, complaints = read(run / "log.txt", "csv")
    assert (bool(found), complaints) == (counts, [])


def test_a_log_that_is_a_file_has_its_directory(run):
    write(run / "args.json", '{"a": 1}')
    assert read(run / "metrics.jsonl")[0] == {"args.json": {"a": 1}}


def test_a_nested_log_belongs_to_the_directory_above(run):
    write(run / "args.json", '{"a": 1}')
    for inner in ("tensorboard", "runs/Nov20_13-07-06_host.example", "checkpoint-500"):
        write(run / inner / "x", "")
        (found,) = read(run / inner)[0].values()
        assert found == {"a": 1}
    write(run / "runs" / "lr-0.1" / "x", "")
    assert read(run / "runs" / "lr-0.1")[0] == {}


def test_what_concerns_all_directories_below_concerns_a_nested_log(run):
    write(run / "torchtune_config.yaml", "epochs: 2\n")
    write(run / "logs" / "run_0_1795327709.7704208" / "x", "")
    (found,) = read(run / "logs" / "run_0_1795327709.7704208")[0].values()
    assert found == {"epochs": 2}


def test_a_models_configuration_counts_only_beside_a_trainer(run):
    write(run / "config.json", '{"hidden_size": 8}')
    assert read(run) == ({}, [])
    assert read(run, "tensorboard")[0] == {"config.json": {"hidden_size": 8}}
    write(run / "trainer_state.json", "{}")
    assert read(run)[0] == {"config.json": {"hidden_size": 8}}


@pytest.mark.parametrize(
    ("name", "text", "problem"),
    [
        ("args.json", '{"a": 1,\n', "is no JSON at line 2"),
        ("args.json", "[" * 100_000, "is no JSON (RecursionError)"),
        ("args.json", '{"a": "' + "x" * (1 << 20) + '"}', "is larger than 1 MiB"),
        ("args.yaml", "a: [1\n", "is no YAML at line 2"),
        ("args.yaml", "[" * 300_000, "nests too deeply"),
        ("args.yaml", "- " * 300_000, "nests too deeply"),
        ("args.yaml", "a: !!bool maybe\n", "is no YAML that can be read"),
    ],
)
def test_a_broken_file_is_said_once_and_costs_nothing_else(run, name, text, problem):
    write(run / name, text)
    write(run / "params.json", '{"lr": 1}')
    files = ConfigFiles(Run(run, "jsonl", None))
    said = []
    for _ in range(3):
        found, complaints = files.read()
        assert [f.name for f in found] == ["params.json"]
        said += complaints
    (complaint,) = map(str, said)
    assert complaint.startswith(f"{run / name}: ")
    assert problem in complaint


def test_what_is_no_table_or_no_file_is_passed_over(run):
    write(run / "args.json", "[1, 2]")
    write(run / "hparams.yaml", "")
    write(run / "args.yaml", "just a word")
    os.mkfifo(run / "params.json")
    assert read(run) == ({}, [])


def test_nothing_is_executed(run, tmp_path):
    mark = tmp_path / "executed"
    for tag in ("apply", "new"):
        text = f"a: !!python/object/{tag}:pathlib.Path.touch [!!python/object/apply:pathlib.Path [{mark}]]\n"
        write(run / "hparams.yaml", text)
        assert read(run)[0]["hparams.yaml"] == {"a.0.0": str(mark)}
    (run / "training_args.bin").write_bytes(pickle.dumps({"lr": 1}))
    assert set(read(run)[0]) == {"hparams.yaml"}
    assert not mark.exists()


def test_a_file_that_changed_is_read_again(run):
    files = ConfigFiles(Run(run, "jsonl", None))
    for steps in (10, 2000):
        write(run / "args.json", json.dumps({"max_steps": steps}))
        assert files.read()[0][0].settings == {"max_steps": steps}
    (run / "args.json").unlink()
    assert files.read() == ([], [])


def ten_aliases_of_the_last(first, form):
    lines = [f"a{i}: &a{i} {form % ', '.join(10 * [f'*a{i - 1}'])}\n" for i in range(1, 12)]
    return f"a0: &a0 {first}\n" + "".join(lines)


LAUGHS = ten_aliases_of_the_last("[x, x]", "[%s]")
MERGES = ten_aliases_of_the_last("{x: 1}", "{<<: [%s]}")


@pytest.mark.slow
@pytest.mark.parametrize("text", [LAUGHS, MERGES, "a: &a [*a, *a]", LAUGHS.replace("[x, x]", "[]")])
def test_aliases_cost_no_more_than_they_may(text):
    assert len(flat(load(text.encode()))) <= MAX_KEYS


plain = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text()
names = st.text(max_size=8)
trees = st.dictionaries(
    st.text(max_size=8),
    st.recursive(
        plain, lambda t: st.lists(t, max_size=3) | st.dictionaries(st.text(max_size=8), t), max_leaves=20
    ),
)


@pytest.mark.long
@given(trees)
def test_every_setting_is_plain_and_can_be_kept(tree):
    found = flat(tree)
    assert found == flat(found)
    assert all(key.encode() for key in found)
    assert all(v is None or isinstance(v, (str, bool, float, int)) for v in found.values())
    json.dumps(found).encode()


@pytest.mark.long
@given(st.dictionaries(st.text("abc", min_size=1), st.integers(-9, 9) | st.text("abcd ", max_size=5)))
def test_yaml_reads_what_yaml_writes(tree):
    assert load(yaml.safe_dump(tree).encode()) == tree


@pytest.mark.slow
@given(st.binary(max_size=200) | st.text("ab:-? []{}&*!<\n\"'|>#%,0", max_size=60).map(str.encode))
def test_whatever_stands_there_is_plain_data_or_refused(data):
    with contextlib.suppress(ValueError):
        assert is_plain(load(data))


def is_plain(data):
    """Whether it holds nothing but what YAML has without tags."""
    match data:
        case dict():
            return all(is_plain(one) for pair in data.items() for one in pair)
        case list() | tuple() | set():
            return all(map(is_plain, data))
        case _:
            return data is None or isinstance(data, str | bytes | int | float | date)
