"""Parts that are judged by Ray, on two raylets in a network namespace that has only loopback."""

import shutil
import subprocess
from importlib.util import find_spec

import pytest

from sentinel.archives import ray_engine
from sentinel.archives.ray_engine import Ray
from sentinel.common.errors import SentinelError
from tests.archives.conftest import archived, reported

_NAMESPACE = ["unshare", "--net", "--pid", "--fork", "--mount-proc", "--kill-child", "ip", "link"]


def _has_namespaces():
    tools = all(map(shutil.which, ("unshare", "ip")))
    return tools and subprocess.run(_NAMESPACE, capture_output=True, check=False).returncode == 0


@pytest.mark.long  # starts Ray
@pytest.mark.skipif(find_spec("ray") is None, reason="Ray is not installed")
@pytest.mark.skipif(not _has_namespaces(), reason="this machine gives no network namespace")
def test_ray_gives_the_same_whatever_dies(tmp_path, tree):
    from tests.archives.in_namespace import run

    found = run(tree, tmp_path)
    expected = reported(archived(tmp_path / "expected", tree)[0])
    assert found["alone"] == expected
    assert found["killed"] == expected
    for failures in found["isolated"].values():
        assert len(failures) == 12
        assert {name for name, why in failures.items() if why != "judged"} == {"poison"}
    assert set(found["listening"]) <= {"0100007F", "0000000000000000FFFF00000100007F"}  # 127.0.0.1


def test_a_missing_library_is_said(monkeypatch):
    def missing(_):
        raise ImportError

    monkeypatch.setattr(ray_engine, "import_module", missing)
    with pytest.raises(SentinelError, match=r"install .*training-sentinel\[ray\]"):
        next(Ray().results(lambda _: [], []))
