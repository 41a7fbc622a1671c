"""What the kernel's log says of a process."""

import os
from pathlib import Path

import pytest

from sentinel.processes import kernel_log
from sentinel.processes.exits import Exit, open_handle
from sentinel.processes.kernel_log import faulted_in, killed_by_oom, xids
from sentinel.processes.table import process
from tests.processes.running import running, until
from tests.processes.test_exits import needs_kernel

KILLED = "Memory cgroup out of memory: Killed process %d (python3) total-vm:78044kB"
FAULT = "python3[%d]: segfault at 0 ip 00007fd2 sp 00007fff error 4 in libc.so.6[156219,7fd2+156000]"
FAULTS = "import ctypes, sys; print('ready', flush=True); sys.stdin.read(); ctypes.string_at(0)"


@pytest.fixture
def mine():
    return process(os.getpid()) or pytest.skip("no /proc")


@pytest.fixture
def log(monkeypatch, mine):
    """Says a line of this process, five seconds after the machine started."""

    def said(line):
        monkeypatch.setattr(kernel_log, "_records", lambda: [(5.0, (line % mine.pid).encode())])

    monkeypatch.setattr(kernel_log, "_INITIAL_NAMESPACE", str(Path("/proc/self/ns/pid").readlink()))
    return said


def test_it_speaks_of_a_process_only_after_its_start(log, mine):
    log(KILLED)
    assert killed_by_oom(mine) is False, "it is about an earlier process of that number"
    assert killed_by_oom(mine._replace(started=0)) is True


def test_it_names_the_library_of_a_segmentation_fault(log, mine):
    log(FAULT)
    assert faulted_in(mine) == ""
    assert faulted_in(mine._replace(started=0)) == "libc.so.6"
    log(FAULT.replace("libc.so.6", "\x1b[31mred"))
    assert "\x1b" not in faulted_in(mine._replace(started=0))


@pytest.mark.parametrize(
    ("line", "text"),
    [
        (
            "NVRM: Xid (PCI:0000:3b:00): 31, pid=%d, name=python3, Ch 00000008, intr 00000000. MMU Fault",
            "Xid 31 of the GPU at 0000:3b:00 (Ch 00000008, intr 00000000. MMU Fault)",
        ),
        (  # as driver 580 writes it, of a kernel that wrote to an address that nobody has
            "NVRM: Xid (PCI:0000:00:06): 31, pid=%d, name=python3, channel 0x0000000a, intr 00000000. "
            "MMU Fault: ENGINE GRAPHICS GPC0 GPCCLIENT_T1_6 faulted @ 0x8315_6be00000. Fault is of",
            "Xid 31 of the GPU at 0000:00:06 (channel 0x0000000a, intr 00000000. MMU Fault: ENGINE "
            "GRAPHICS GPC0 GPCCLIENT_T1…)",
        ),
        (
            "NVRM: Xid (PCI:0000:3b:00): 79, pid='<unknown>', name=<unknown>, GPU has fallen off the bus.",
            "Xid 79 of the GPU at 0000:3b:00 (GPU has fallen off the bus.)",
        ),
        (
            "NVRM: Xid (PCI:0000:01:00): 62, 323f0f30 0000c3d8",
            "Xid 62 of the GPU at 0000:01:00 (323f0f30 0000c3d8)",
        ),
        ("NVRM: Xid (PCI:0000:3b:00): 31, pid=1, name=python3, Ch 00000008", ""),
        ("NVRM: loading NVIDIA UNIX Open Kernel Module", ""),
    ],
)
def test_it_tells_the_errors_of_gpus_of_a_process_or_of_none(monkeypatch, log, mine, line, text):
    log(line if "%d" in line else line + "%.0s")
    assert xids(mine._replace(started=0)) == text
    assert xids(mine) == "", "it is older than the process"


def test_a_log_that_cannot_be_read_says_nothing(monkeypatch, mine):
    monkeypatch.setattr(kernel_log, "_INITIAL_NAMESPACE", "another")
    assert (killed_by_oom(mine), faulted_in(mine), xids(mine)) == (None, "", "")


@pytest.mark.slow
@needs_kernel
def test_the_end_of_a_process_names_the_library_where_the_kernel_says_it():
    with running(FAULTS) as one:
        handle = open_handle(process(one.pid))
        one.stdin.close()
        one.wait()
        assert until(handle.exit) in (Exit(signal=11), Exit(signal=11, library="libc.so.6"))
    assert Exit(signal=11, library="libc.so.6").words == "was killed by SIGSEGV in libc.so.6"
