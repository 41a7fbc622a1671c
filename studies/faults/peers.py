"""The side of the peers: `python -m studies.faults.peers TABLES` asks each of them about each CSV file.

It needs what `requirements/peers.txt` lists, and not sentinel. It prints a JSON object: what each peer found
in each file at a severity of warning or worse, or null if it could not judge the file.
"""

import contextlib
import io
import json
import sys
from collections.abc import Callable
from pathlib import Path

import gradsnitch
import training_doctor
import trainspotter
from runmedic import loaders, roles
from runmedic.checks import run_checks


def ask_runmedic(table: Path) -> list[str]:
    (run,) = loaders.load(str(table))
    return [found.check for found in run_checks(run, roles.detect(run, {})) if found.severity != "info"]


def ask_trainspotter(table: Path) -> list[str]:
    findings = trainspotter.run_all(trainspotter.load_run(table, "csv"))
    return [found.detector for found in findings if found.severity != "info"]


def ask_training_doctor(table: Path) -> list[str]:
    """It judges the tags `loss`, `lr`, `grad_norm` and `val_loss`, so the tables have such names."""
    findings = training_doctor.Doctor().load(table).analyze()
    return [found.detector_name for found in findings if found.severity.value != "info"]


def ask_gradsnitch(table: Path) -> list[str]:
    return [found.name for found in gradsnitch.lint_csv(str(table))]


PEERS: dict[str, Callable[[Path], list[str]]] = {
    "runmedic": ask_runmedic,
    "trainspotter": ask_trainspotter,
    "training-doctor": ask_training_doctor,
    "gradsnitch": ask_gradsnitch,
}


def answer(ask: Callable[[Path], list[str]], table: Path) -> list[str] | None:
    """The different findings, or None if the peer raises."""
    try:
        with contextlib.redirect_stdout(io.StringIO()):
            return list(dict.fromkeys(ask(table)))
    except Exception as error:  # noqa: BLE001 - whatever a peer raises
        print(f"{table.name}: {type(error).__name__}: {error}", file=sys.stderr)
        return None


if __name__ == "__main__":
    tables = sorted(Path(sys.argv[1]).glob("*.csv"))
    print(
        json.dumps(
            {name: {table.stem: answer(ask, table) for table in tables} for name, ask in PEERS.items()}
        )
    )
