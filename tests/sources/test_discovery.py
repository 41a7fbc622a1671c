import os
import socket
from pathlib import Path

import pytest

from sentinel.sources import discovery
from sentinel.sources.base import Run
from sentinel.sources.discovery import common_path, discover, run_name
from sentinel.sources.readers.files import open_log
from sentinel.sources.registry import Format, formats
from tests.sources import messy_home
from tests.sources.tracker_writers import TrackioWriter


@pytest.fixture
def tree(tmp_path):
    """Makes files, logs where they end in .jsonl, and, where a slash ends the name, directories."""

    def make(*names):
        for name in names:
            path = tmp_path / name
            (path if name.endswith("/") else path.parent).mkdir(parents=True, exist_ok=True)
            if not name.endswith("/"):
                path.write_text('{"step": 1, "loss": 0.5}\n' if name.endswith(".jsonl") else "")
        return tmp_path

    return make


def found(*paths):
    return [run.path for run in discover(paths).runs]


def test_a_tree_of_runs_in_order(tree):
    root = tree("b/log.jsonl", "a/2/log.jsonl", "a/1/log.jsonl", "a/1/notes.txt", "log.jsonl")
    names = [run_name(run, common_path([root])) for run in discover([root]).runs]
    assert names == ["a/1/log.jsonl", "a/2/log.jsonl", "b/log.jsonl", "log.jsonl"]


def test_a_file_is_that_run_only(tree):
    root = tree("a/1.jsonl", "a/2.jsonl")
    assert found(root / "a/2.jsonl") == [root / "a/2.jsonl"]


def test_a_path_that_does_not_exist_is_said(tree):
    root = tree("log.jsonl")
    discovered = discover([root / "later", root])
    assert discovered.missing == [root / "later"]
    assert len(discovered.runs) == 1


def test_what_is_hidden_or_installed_is_skipped(tree):
    root = tree(
        ".git/a.jsonl", "__pycache__/a.jsonl", "node_modules/x/a.jsonl", ".venv/a.jsonl", ".a.jsonl.swp.jsonl"
    )
    assert found(root) == []
    assert found(root / ".git") == [root / ".git/a.jsonl"]


def test_hidden_places_where_frameworks_log_are_searched(tree):
    root = tree("guild/.guild/a.jsonl", "sample-factory/.summary/0/a.jsonl")
    assert found(root) == [root / "guild/.guild/a.jsonl", root / "sample-factory/.summary/0/a.jsonl"]


def test_a_run_that_is_reached_twice_counts_once(tree):
    root = tree("run-1/log.jsonl", "elsewhere/")
    (root / "latest-run").symlink_to("run-1")
    (root / "elsewhere/log.jsonl").symlink_to(root / "run-1/log.jsonl")
    assert (
        found(root) == found(root / "latest-run") == found(root, root / "run-1") == [root / "run-1/log.jsonl"]
    )


def test_what_wandb_logs_of_itself_is_no_log(tree):
    root = tree("wandb/run-20260101_120000-x1/logs/a.jsonl", "wandb/run-1/logs/a.jsonl")
    (root / "wandb/debug.jsonl").symlink_to("run-20260101_120000-x1/logs/a.jsonl")
    assert found(root) == [root / "wandb/run-1/logs/a.jsonl"]


def test_links_in_a_circle(tree):
    root = tree("a/b/log.jsonl")
    (root / "a/b/up").symlink_to(root / "a")
    (root / "a/b/root").symlink_to("/")
    (root / "a/self").symlink_to("self")
    (root / "a/gone").symlink_to("nowhere")
    assert found(root) == [root / "a/b/log.jsonl"]


def test_a_link_out_of_the_tree_is_followed_only_if_a_person_names_it(tree, tmp_path_factory):
    outside = tmp_path_factory.mktemp("scratch")
    (outside / "log.jsonl").touch()
    root = tree("runs/", "log.jsonl")
    (root / "runs/big").symlink_to(outside)
    (root / "runs/one.jsonl").symlink_to(outside / "log.jsonl")
    (root / "runs/all").symlink_to("/")
    links = [root / "runs" / name for name in ("all", "big", "one.jsonl")]
    discovered = discover([root])
    assert [run.path for run in discovered.runs] == [root / "log.jsonl"]
    assert [issue.path for issue in discovered.read_issues] == links
    assert "is a link out of what was named" in str(discovered.read_issues[0])
    assert {*found(root, root / "runs/big")} == {root / "log.jsonl", outside / "log.jsonl"}
    assert found(root / "runs/one.jsonl") == [outside / "log.jsonl"]


def test_a_link_from_one_path_to_another_is_followed(tree):
    root = tree("a/", "b/log.jsonl")
    (root / "a/link").symlink_to(root / "b")
    discovered = discover([root / "a", root / "b"])
    assert [run.path for run in discovered.runs] == [root / "b/log.jsonl"]
    assert not discovered.read_issues


def test_a_link_to_where_nobody_looks_is_followed(tree):
    root = tree("runs/.hidden/a.jsonl", "runs/seen/.hidden/b.jsonl", "runs/seen/c.jsonl")
    (root / "runs/a.jsonl").symlink_to(".hidden/a.jsonl")
    (root / "runs/b.jsonl").symlink_to("seen/.hidden/b.jsonl")
    (root / "runs/c.jsonl").symlink_to("seen/c.jsonl")
    (root / "runs/d.jsonl").symlink_to("seen/../.hidden/a.jsonl")
    hidden = [root / "runs/.hidden/a.jsonl", root / "runs/seen/.hidden/b.jsonl"]
    assert found(root) == [*hidden, root / "runs/seen/c.jsonl"]


def test_what_cannot_be_a_log_is_neither_opened_nor_in_the_way(tree, monkeypatch):
    root = tree("log.jsonl", "directory.jsonl/", "mlflow/metrics/")
    for name in ("pipe.jsonl", "pipe.json", "mlflow/metrics/loss"):
        os.mkfifo(root / name)
    server = socket.socket(socket.AF_UNIX)
    monkeypatch.chdir(root)  # the address of a socket has to be short
    server.bind("socket.jsonl")
    server.close()
    (root / "nowhere.jsonl").symlink_to("nothing")
    (root / "circle.jsonl").symlink_to("circle.jsonl")
    (root / "device.jsonl").symlink_to("/dev/zero")
    assert found(root) == [root / "log.jsonl"]


def test_a_link_that_cannot_be_read_leads_nowhere(tree, monkeypatch):
    root = tree("a/log.jsonl", "b/log.jsonl")
    (root / "a/exe").symlink_to("/somewhere")  # as /proc/2/exe, which even root cannot read
    readlink = os.readlink

    def refuse(path, **options):
        if os.fspath(path).endswith("exe"):
            raise FileNotFoundError(2, "No such file or directory")
        return readlink(path, **options)

    monkeypatch.setattr(os, "readlink", refuse)
    assert found(root) == [root / "a/log.jsonl", root / "b/log.jsonl"]
    assert discover([root / "a/exe"]).missing == [root / "a/exe"]
    assert common_path([root / "a/exe"]) == root / "a/exe"


@pytest.mark.skipif(not Path("/proc/kmsg").exists(), reason="needs a file that keeps its reader waiting")
@pytest.mark.parametrize("place", ["/proc", "/proc/", "/sys", "/proc/kmsg", "/proc/self/root"])
def test_a_link_into_the_kernel_is_not_followed(tree, place):
    root = tree("log.jsonl")
    (root / "kernel.log").symlink_to(place)
    discovered = discover([root])
    assert [run.path for run in discovered.runs] == [root / "log.jsonl"]
    assert [str(complaint.path) for complaint in discovered.read_issues] == [f"{root}/kernel.log"]


@pytest.mark.skipif(not Path("/proc/self").exists(), reason="needs a file system of the kernel")
def test_what_is_of_the_kernel_is_known_by_its_type(tree):
    (issue,) = discover([Path("/proc")]).read_issues
    assert str(issue) == "/proc: is of the kernel and holds no logs, so it was skipped"
    with pytest.raises(OSError, match="not a regular file"):
        open_log(Path("/proc/self/status"))


def test_a_file_beside_a_log_that_is_a_link_out_of_its_directory_is_not_opened(tree):
    root = tree("run/", "secret.yaml", "run/..data/config.yaml")
    (root / "run/config.yaml").symlink_to(root / "secret.yaml")
    (root / "run/hparams.yaml").symlink_to("..data/config.yaml")
    with pytest.raises(OSError, match="a link out of its directory"):
        open_log(root / "run/config.yaml")
    open_log(root / "run/hparams.yaml").close()


def test_a_format_that_fails_costs_no_other(tree, monkeypatch):
    root = tree("a/log.jsonl")
    monkeypatch.setitem(discovery.formats(), "csv", Format(lambda *_: [][0]))
    discovered = discover([root])
    assert [run.path for run in discovered.runs] == [root / "a/log.jsonl"]
    assert {str(c) for c in discovered.read_issues} == {
        f"{place}: cannot be searched (IndexError); please report it" for place in (root, root / "a")
    }


def test_a_path_that_is_no_text_is_complained_about(tree):
    root = tree("log.jsonl")
    odd = root / os.fsdecode(b"caf\xe9")
    odd.mkdir()
    (odd / "log.jsonl").touch()
    (root / "link").symlink_to(odd / "log.jsonl")
    assert found(root) == [root / "log.jsonl"]
    for complaint in [*discover([root]).read_issues, *discover([odd]).read_issues]:
        str(complaint).encode()
    assert not discover([odd]).runs
    assert discover([odd]).read_issues


def test_a_directory_that_cannot_be_read_is_complained_about(tree, monkeypatch):
    root = tree("a/log.jsonl", "b/log.jsonl")
    scandir = os.scandir

    def refuse(path):
        if Path(path).name == "a":
            raise PermissionError(13, "Permission denied")
        return scandir(path)

    monkeypatch.setattr(os, "scandir", refuse)  # root may read everything
    discovered = discover([root])
    assert [run.path for run in discovered.runs] == [root / "b/log.jsonl"]
    assert [str(c) for c in discovered.read_issues] == [f"{root}/a: cannot be read (Permission denied)"]


def test_a_name_that_is_no_text_is_complained_about(tree):
    root = tree("log.jsonl")
    (root / os.fsdecode(b"caf\xe9.jsonl")).touch()
    discovered = discover([root])
    assert [run.path for run in discovered.runs] == [root / "log.jsonl"]
    (complaint,) = discovered.read_issues
    assert "rename it" in str(complaint)
    str(complaint).encode()


def test_two_formats_in_one_directory_are_two_runs(tree, monkeypatch):
    def find(directory, names):
        if "log.jsonl" in names:
            yield Run(directory, "other", None)

    monkeypatch.setattr(discovery, "formats", lambda: {**formats(), "other": Format(find)})
    root = tree("a/log.jsonl")
    assert [run.id for run in discover([root]).runs] == [f"other:{root}/a", f"jsonl:{root}/a/log.jsonl"]


def test_formats_are_found_by_themselves():
    assert "jsonl" in formats()


@pytest.mark.parametrize(
    ("path", "roots", "name"),
    [
        ("/runs/a/b.jsonl", ["/runs"], "a/b.jsonl"),
        ("/runs/a", ["/runs/a"], "a"),
        ("/runs/a", ["/runs/a", "/runs/b"], "a"),
        ("/runs/a/x", ["/runs/a", "/more/runs/a"], "runs/a/x"),
        ("/elsewhere/a", ["/runs"], "/elsewhere/a"),
    ],
)
def test_names(path, roots, name):
    assert run_name(Run(Path(path), "jsonl", None), common_path(map(Path, roots))) == name


@pytest.mark.slow
def test_a_home_directory_without_runs_has_none(tmp_path):
    answers = "".join(
        f'{{"prompt_id": {i * 7919 % 1000}, "reward": 0.5, "kl": 0.1}}\n' for i in range(20_000)
    )
    contents = {
        "clone/.venv/lib/metrics.jsonl": '{"step": 1, "loss": 0.5}\n',
        "clone/node_modules/a/log.jsonl": '{"step": 1, "loss": 0.5}\n',
        "clone/package.json": '{"name": "a", "version": 1}',
        "clone/tsconfig.json": '{\n  "epoch": [1]\n}',
        "clone/CHANGELOG.txt": "Epoch 2, loss of data: 3 files\n",
        "data/train.jsonl": answers,
        "data/answers.json": "[" + answers.replace("\n", ",\n") + "{}]",
        "data/prices.csv": "step,price\n1,2\n",
        "data/photo.log": "\x89PNG\r\n\x1a\n",
        "logs/access.log": 'GET /plot?epoch=7&loss=1 HTTP/1.1" 200\n' * 99,
        "logs/syslog": "step 1: loss 0.5\n" * 9,
        **{f"rollouts/{i}.jsonl": f'{{"step": {i}, "score": 1.0}}\n' * 9 for i in range(9)},
    }
    for name, content in contents.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(content)
    discovered = discover([tmp_path])
    assert not discovered.runs
    assert not discovered.read_issues


@pytest.mark.slow
def test_a_messy_home_directory_lists_no_run(tmp_path):
    messy_home.build(tmp_path, 2000)
    assert [run.path.relative_to(tmp_path) for run in discover([tmp_path]).runs] == []


@pytest.mark.parametrize("name", ["a\0b", "a" * 5000])
def test_a_name_that_no_path_can_have_is_refused_in_one_line(tmp_path, name):
    writer = TrackioWriter()
    writer.start(tmp_path)
    for run in (name, "well"):
        with writer.database:
            writer.database.execute(
                "INSERT INTO metrics (run_id, timestamp, run_name, step, metrics) VALUES (?, ?, ?, ?, ?)",
                (run, "2026-01-01", run, 1, '{"loss": 1.0}'),
            )
    writer.close()
    discovered = discover([tmp_path])
    assert [run.path.name for run in discovered.runs] == ["well-well"]
    (complaint,) = discovered.read_issues
    assert complaint.path == tmp_path / "demo.db"
    assert complaint.problem.startswith("no file can be called 'a")
    assert len(complaint.problem) < 150
