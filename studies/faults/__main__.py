"""`make faults`: trains with and without each fault, judges the logs, and writes measurements/faults.md.

python -m studies.faults [NAME...]     trains some faults again, or all of them; the others keep their
logs
"""

import json
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

from studies import ROOT
from studies.faults.judge import Replayed, export, outcome, replay
from studies.faults.page import write
from studies.faults.truth import Run, read

LOGS = ROOT / ".venv" / "faults"
TRAINER, PEERS = (ROOT / ".venv" / name / "bin" / "python" for name in ("trainers", "peers"))


def ask(
    runs: Sequence[Run], replayed: Sequence[Sequence[Replayed]]
) -> Mapping[str, Sequence[Sequence[str] | None]]:
    """What each peer finds in each run."""
    with tempfile.TemporaryDirectory() as tables:
        for index, (run, logs) in enumerate(zip(runs, replayed, strict=True)):
            export(LOGS / run.path, logs, Path(tables, f"{index:03}.csv"))
        command = [str(PEERS), "-m", "studies.faults.peers", tables]
        said = json.loads(subprocess.run(command, check=True, cwd=ROOT, stdout=subprocess.PIPE).stdout)
    return {peer: list(found.values()) for peer, found in said.items()}


def main(names: Sequence[str]) -> None:
    """Train, judge and write."""
    subprocess.run([TRAINER, "-m", "studies.faults.train", LOGS, *names], check=True, cwd=ROOT)
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
