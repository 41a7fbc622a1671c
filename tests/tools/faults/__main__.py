"""`make faults`: trains with and without each fault, judges the logs, and writes detectors/FAULTS.md.

python -m tests.tools.faults [NAME...]     trains some faults again, or all of them; the others keep their
logs
"""

import json
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

from tests.tools.faults.judge import Replayed, export, outcome, replay
from tests.tools.faults.page import write
from tests.tools.faults.truth import Run, read

ROOT = Path(__file__).parents[3]
LOGS = ROOT / ".venv" / "faults"
TRAINER, PEERS = (ROOT / ".venv" / name / "bin" / "python" for name in ("trainers", "peers"))


def ask(
    runs: Sequence[Run], replayed: Sequence[Sequence[Replayed]]
) -> Mapping[str, Sequence[Sequence[str] | None]]:
    """What each peer finds in each run."""
    with tempfile.TemporaryDirectory() as tables:
        for index, (run, logs) in enumerate(zip(runs, replayed, strict=True)):
            export(LOGS / run.path, logs, Path(tables, f"{index:03}.csv"))
        command = [str(PEERS), "-m", "tests.tools.faults.peers", tables]
        said = json.loads(subprocess.run(command, check=True, cwd=ROOT, stdout=subprocess.PIPE).stdout)
    return {peer: list(found.values()) for peer, found in said.items()}


def main(names: Sequence[str]) -> None:
    """Train, judge and write."""
    subprocess.run([TRAINER, "-m", "tests.tools.faults.train", LOGS, *names], check=True, cwd=ROOT)
    runs = read(LOGS)
    replayed = replay(LOGS, runs)
    said = ask(runs, replayed)
    write(
        [
            outcome(run, logs, {peer: found[index] for peer, found in said.items()})
            for index, (run, logs) in enumerate(zip(runs, replayed, strict=True))
        ]
    )


if __name__ == "__main__":
    main(sys.argv[1:])
