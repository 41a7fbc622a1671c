"""What a training installs: the packages that the page names are enough for the monitor and the probes."""

import re
import subprocess
import sys
from importlib.metadata import distributions
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "deploy" / "site" / "docs" / "install.md"
TRAINING = """
import sys

class Absence:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in {absent!r}:
            raise ModuleNotFoundError(f"no module named {{name!r}}", name=name)

sys.meta_path.insert(0, Absence())

from sentinel import Monitor, Severity, probe

with Monitor({{"lr": 1e-3}}) as monitor:
    for step in range(200):
        monitor.log(step, {{"loss": 2 / (1 + step) if step < 100 else float("nan")}})
assert monitor.failure is None, monitor.failure
(incident,) = monitor.incidents
assert incident.severity is Severity.CRITICAL
assert probe.__name__ == "probe"
"""


def name_of(distribution):
    return re.sub(r"[-_.]+", "-", distribution.metadata["Name"]).lower()


@pytest.mark.long  # a process of its own
def test_a_training_needs_no_more_than_the_page_says():
    (line,) = re.findall(r"pip install (google-crc32c .*)", PAGE.read_text())
    named = {*line.split()}
    enough = named | {
        "annotated-types",
        "polars-runtime-32",
        "pydantic-core",
        "typing-inspection",
    }  # of these
    assert {"wandb", "tensorboard", "tbparse", "scipy", "pandas"}.isdisjoint(enough)
    tops = {}
    for distribution in distributions():
        for file in distribution.files or ():
            if (top := file.parts[0].removesuffix(".py")).isidentifier() and str(file).endswith(".py"):
                tops.setdefault(top, set()).add(name_of(distribution))
    given = enough | {"training-sentinel", "pip", "setuptools"}
    absent = {top for top, names in tops.items() if not names & given and top not in sys.stdlib_module_names}
    absent -= {"google"}  # in which several packages lie
    assert {"wandb", "tensorboard", "scipy"} <= absent
    code = TRAINING.format(absent=sorted(absent))
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
