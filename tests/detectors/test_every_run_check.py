"""What every run check keeps to, whoever wrote it."""

import string

import pytest
from msgspec.structs import replace

from sentinel import catalogue
from sentinel.detectors.api import Severity
from sentinel.detectors.discovery import all_detectors
from sentinel.detectors.run_checks import (
    Completion,
    Deviation,
    Ended,
    HangDiagnosis,
    Inventory,
    Printed,
    RunCheck,
    RunFinding,
    RunView,
    SiblingComparison,
    Stopped,
    Together,
    Writer,
)
from sentinel.detectors.signals import Signal
from sentinel.incidents.incident import format_message
from sentinel.testing.detectors import HEADINGS

CHECKS = [check for check in all_detectors().values() if isinstance(check, RunCheck)]

each_check = pytest.mark.parametrize("check", CHECKS, ids=lambda c: c.name)

NOTHING = RunView(
    points=0,
    first_step=None,
    last_step=None,
    last_time=None,
    pauses=(),
    silent_seconds=None,
    ended=None,
    printed=(),
    stopped=(),
)
ILL = RunView(
    first_step=0,
    dead_rank="rank 2 of 4 died: SIGKILL, 2.0 s ago. Ranks 0, 1 and 3 still run and wait for it",
    points=9,
    last_step=8,
    last_time=1.7e9,
    pauses=(1.0, 2.0),
    silent_seconds=1e6,
    ended=None,
    printed=(
        Printed("train.log", 3, "E: x", None, None, Severity.CRITICAL, "a.py:1", ("O11",)),
        Printed("train.log", 4, "Killed", None, None, Severity.WARNING, "", ("DP9",)),
        Printed("train.log", 5, "E: y", None, None, Severity.WARNING, "a.py:2", ("O11",)),
        Printed("train.log", 6, "Aborted", None, None, Severity.CRITICAL, "", ("DP9",)),
        Printed("train.log", 7, "E: reset by peer", None, None, Severity.INFO, "a.py:3"),
    ),
    stopped=(
        Stopped("s", 7, None, "its steps order nothing"),
        Stopped("s", 7, None, "loss has too many tags", "loss"),
    ),
    inventories=(Inventory("s", 100, None, "sb3", frozenset({"loss"}), {"max_grad_norm": 1.0}),),
    unreadable="it is no log",
    failure="the jsonl reader failed: E",
)
STANDS = [
    HangDiagnosis("Rank 2 is stopped by a signal", "stopped", "Rank 2: f (a.py:1)", 4),
    HangDiagnosis("Rank 2 is waiting for a device", "device", "Rank 2: f (a.py:1)", 4),
]
AMID = replace(ILL, completion=lambda: Completion(goes_on="it is at step 8 of 90 planned", amid=True))
DEPARTED = Deviation(Signal.LOSS, "loss", True, 3, 6, 2.0, 1.0, 1.5, 9.0)
AMONG = [replace(ILL, siblings=SiblingComparison(siblings, [DEPARTED])) for siblings in (3, 8)]
ENDED = [
    replace(ILL, finalized=Ended(outcome, reason, *exited), planned_steps=900.0)
    for outcome, reason, *exited in [
        ("crashed", "exit code 1 in the exit record"),
        ("crashed", "exit code 137 in the exit record"),
        ("crashed", "process 7 (python) was killed by SIGKILL; the kernel's OOM killer did not do it"),
        ("finished", "exit code 0 in the exit record"),
        ("preempted", "it printed 'CANCELLED'"),
        ("preempted", "process 7 (python) was killed by SIGTERM", True),
        ("finished", "process 7 (python) exited with status 0", True),
    ]
]


@each_check
def test_page_has_the_headings(check):
    headings = [line.removeprefix("## ") for line in check.doc.splitlines() if line.startswith("## ")]
    assert headings == HEADINGS


@each_check
def test_cites_catalogue_entries_that_exist(check):
    assert check.variants
    assert set(check.catalogue) <= catalogue.load().keys()


@each_check
def test_thresholds_have_defaults_and_meanings(check):
    for name, parameter in check.parameters.items():
        assert isinstance(parameter.default, parameter.type), name
        assert parameter.meaning.strip(), name


@each_check
def test_a_run_of_which_nothing_is_known_is_clean(check):
    assert not [finding for finding in check.check(NOTHING) if check.severity(finding)]


@each_check
def test_a_run_that_is_ill_is_found_and_said_in_words(check):
    silent = [replace(ILL, silent_seconds=seconds) for seconds in (700.0, 1e6)]
    gone = [replace(view, log_is_removed=lambda: True) for view in silent]
    amid = [replace(AMID, silent_seconds=seconds) for seconds in (700.0, 1e6)]
    failed = replace(ILL, dead_rank="rank 2 of 4 died: exit status 1, 2.0 s ago", ranks=4)
    amid += [replace(view, hang_diagnosis=lambda at=at: at) for view in amid for at in STANDS]
    dead = replace(ILL, process=lambda: Writer("train.pid names process 7", lives=False))
    lives = [replace(view, process=lambda: Writer("process 7 sleeps", lives=True)) for view in silent]
    at_a_step, alike = (Together(40, "/runs", "12:00", 1e6, same) for same in (False, True))
    together = [replace(view, together=them) for view in (ILL, AMID) for them in (at_a_step, alike)]
    views = [*silent, *gone, *amid, dead, *lives, failed, *together, *AMONG, *ENDED]
    found = [finding for view in views for finding in check.check(view) if check.severity(finding)]
    declared = {(name, one) for name, variant in check.variants.items() for one in variant.severities}
    assert {(finding.variant, check.severity(finding)) for finding in found} == declared
    for finding in found:
        message = check.variants[finding.variant].message
        fields = {field for _, field, _, _ in string.Formatter().parse(message) if field}
        assert fields <= {*finding.evidence, *check.parameters}
        assert set(finding.evidence) <= set(check.evidence), "evidence without a label"
        assert "?" not in format_message(message.replace("?", "."), finding.evidence)


@each_check
def test_asks_nothing_of_a_run(check):
    assert check.demand.missing(()) == []


@each_check
def test_a_check_asks_for_no_severity_that_it_does_not_declare(check):
    asked = [finding for view in (ILL, AMID, *ENDED) for finding in check.check(view) if finding.severity]
    assert all(check.severity(finding) is finding.severity for finding in asked)


@each_check
def test_a_variant_that_only_informs_pages_nobody(check):
    quiet = replace(check, informs=frozenset(check.variants))
    for name, variant in check.variants.items():
        for severity in variant.severities:
            assert quiet.severity(RunFinding(0, name, severity)) == min(severity, Severity.INFO)
