"""How the ends of real processes are told by a real watch: each kind of end for each kind of writer.

`python -m tests.tools.ends [WRITER...]` prints a table with the seconds from the end of a process to the
message, and fails where something else was told, or later than ``LATE_SECONDS``. One watch is told by the
kernel how a process ended; to the other one it tells nothing, as before Linux 6.15.
"""

import os
import select
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from tests.processes.trainings import KILLED, TRAINING, WRITERS
from tests.tools.ear import SENTINEL, Ear, watching

LATE_SECONDS = 2.0
FOUND_SECONDS = 40.0  # in which a watch finds the processes of the runs
TURNS = 10  # in which the trainings log meanwhile
OLD_KERNEL = (
    "from sentinel.processes import exits; exits._GET_INFO = 0; from sentinel.cli.app import main; main()"
)
KINDS = ("held", "reopened", "tee", "tensorboard", "wandb", "hugging_face")
LIMIT = 400 << 20  # bytes of the control group in which a process runs out of memory
GROUPS = Path("/sys/fs/cgroup")

NOBODY_REAPS = "import subprocess, sys, time; subprocess.Popen(sys.argv[1:]); time.sleep(3600)"
REAPED_AT_ONCE = f"import signal; signal.signal(signal.SIGCHLD, signal.SIG_IGN); {NOBODY_REAPS}"


@dataclass(frozen=True)
class Case:
    """An end: the code that brings it, and any of these detectors with some words has to tell."""

    end: str
    detectors: tuple[str, ...]
    words: str
    launcher: str = ""  # code that starts the training
    limited: bool = False
    old_kernel: bool = False


CRASHED = ("run-crashed",)
EARLY = ("run-ended-early",)
ASKED = ("ended-or-stuck",)
FILLS = "hog = []\nwhile True: hog.append(b'x' * (1 << 24))"
CASES = {
    "status 0": Case("pass", EARLY, "before its planned end"),
    "status 3": Case("sys.exit(3)", CRASHED, "exited with status 3"),
    "exception": Case("raise ValueError", CRASHED, "exited with status 1"),
    "SIGTERM": Case(KILLED.format(15), ("run-preempted",), "was killed by SIGTERM"),
    "SIGKILL": Case(KILLED.format(9), CRASHED, "was killed by SIGKILL"),
    "SIGSEGV": Case(KILLED.format(11), CRASHED, "was killed by SIGSEGV"),
    "OOM": Case(FILLS, CRASHED, "OOM killer (cgroup limit", limited=True),
    "zombie": Case("sys.exit(7)", CRASHED, "exited with status 7", NOBODY_REAPS),
    "unknown": Case("sys.exit(3)", ASKED, "its process is gone", REAPED_AT_ONCE, old_kernel=True),
}
OWN = {
    ("tensorboard", "status 0"): (("run-finished",), "exited with status 0"),  # its files hold no plan
    ("hugging_face", "status 0"): ((*EARLY, "run-finished"), "at step 220"),  # one of its logs holds a plan
    ("wandb", "exception"): (CRASHED, "exit code 1"),  # W&B records it
    ("wandb", "status 3"): (CRASHED, "exit code 3"),
    ("wandb", "status 0"): (("run-finished",), "exit code 0"),  # which W&B records
    ("wandb", "zombie"): (CRASHED, "exit code 7"),
    ("wandb", "unknown"): (CRASHED, "exit code 3"),
}
"""What tells instead where a writer's log says more, or less, than the others."""


class Training:
    """One training, which goes on until it is told to end."""

    def __init__(self, writer: str, case: Case, place: Path, group: Path | None) -> None:
        self.name = place.parent.name
        self.ended_at = 0.0
        joins = f"open({str(group / 'cgroup.procs')!r}, 'w').write(str(os.getpid()))\n" if group else ""
        code = TRAINING.format(writer=joins + WRITERS[writer], end=case.end)
        launcher = [sys.executable, "-c", case.launcher] if case.launcher else []
        names = "import os; os.write(1, b'%d\\n' % os.getpid())\n"
        if writer == "wandb":
            place.mkdir()
        self._process = subprocess.Popen(
            [*launcher, sys.executable, "-c", names + code, str(place)],
            stdin=-1,
            stdout=-1,
            stderr=subprocess.STDOUT if writer == "tee" else subprocess.DEVNULL,
        )
        self._end = os.pidfd_open(int(self._process.stdout.readline()))
        self._waits()

    def go_on(self) -> None:
        """Log some steps more."""
        self._process.stdin.write(b"\n")
        self._process.stdin.flush()
        self._waits()

    def end(self) -> None:
        """Let it end; gives nothing before it has."""
        poll = select.poll()
        poll.register(self._end, select.POLLIN)
        self._process.stdin.close()
        poll.poll()
        self.ended_at = time.monotonic()
        if self._process.args[2] == NOBODY_REAPS:
            return
        with suppress(subprocess.TimeoutExpired):
            self._process.wait(0.1)

    def close(self) -> None:
        self._process.kill()
        self._process.wait()
        self._process.stdout.close()
        os.close(self._end)

    def _waits(self) -> None:
        while (line := self._process.stdout.readline()) != b"logged\n":
            assert line, f"{self.name} ended too early"


@contextmanager
def limited() -> Iterator[Path | None]:
    """A control group with little memory, of version 1 or 2; None where none may be made."""
    v1 = GROUPS / "memory"
    group, limit = (v1, "memory.limit_in_bytes") if v1.exists() else (GROUPS, "memory.max")
    group /= f"ends-{os.getpid()}"
    try:
        group.mkdir()
        (group / limit).write_text(str(LIMIT))
    except OSError:
        yield None
        return
    yield group
    group.rmdir()


def where(root: Path, writer: str, name: str, *, old: bool) -> Path:
    """The place of a training, which each has for itself."""
    return root / ("old kernel" if old else "kernel") / f"{writer}-{name.replace(' ', '-')}"


def told(training: Training, case: Case, writer: str, name: str, ear: Ear) -> tuple[str, str]:
    """What was told of an end, for the table, and what is wrong with that."""
    detectors, words = OWN.get((writer, name), (case.detectors, case.words))
    training.end()
    heard = ear.wait(training.name, lambda one: one.event == "firing", 5 * LATE_SECONDS)
    if heard is None:
        return "nothing", f"{writer}, {name}: nothing was told"
    late = heard.at - training.ended_at
    right = heard.incident["detector"] in detectors
    said = f"{late:.1f} s {heard.incident['detector']}"
    if not right or words not in heard.incident["summary"]:
        return f"{said} (!)", f"{writer}, {name}: {heard}"
    return said, f"{writer}, {name}: told after {late:.1f} s" if late > LATE_SECONDS else ""


def row(writer: str, root: Path, ears: Mapping[bool, Ear], group: Path | None) -> Iterator[tuple[str, str]]:
    """What was told of each end of one kind of writer."""
    with ExitStack() as stack:
        trainings = {}
        for name, case in CASES.items():
            if case.limited and group is None:
                continue
            place = where(root, writer, name, old=case.old_kernel) / "run"
            trainings[name] = Training(writer, case, place, group if case.limited else None)
            stack.callback(trainings[name].close)
        for _ in range(TURNS):
            for training in trainings.values():
                training.go_on()
            threading.Event().wait(FOUND_SECONDS / TURNS)
        for name, case in CASES.items():
            one = trainings.get(name)
            yield told(one, case, writer, name, ears[case.old_kernel]) if one else ("not allowed here", "")


def main(writers: Sequence[str]) -> None:
    wrong: list[str] = []
    with ExitStack() as stack:
        root = Path(stack.enter_context(tempfile.TemporaryDirectory())).resolve()
        group = stack.enter_context(limited())
        ears = {}
        for old in (False, True):
            places = [where(root, writer, name, old=old) for writer in writers for name in CASES]
            for place in places:
                place.mkdir(parents=True)
            command = [sys.executable, "-c", OLD_KERNEL] if old else SENTINEL
            more = "[detectors.run-finished]\nenabled = true\n"
            ears[old] = stack.enter_context(watching(root / f"watch-{old}", places, more, command))
        print("| writer |", " | ".join(CASES), "|")
        print("| --- " * (len(CASES) + 1) + "|")
        for writer in writers:
            cells = []
            for cell, fault in row(writer, root, ears, group):
                cells.append(cell)
                wrong += [fault] * bool(fault)
            print(f"| {writer} |", " | ".join(cells), "|", flush=True)
    sys.exit("\n".join(wrong) or None)


if __name__ == "__main__":
    main(sys.argv[1:] or KINDS)
