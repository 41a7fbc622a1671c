"""The page of what an archive cost stays small, and shows no text of a run as anything else."""

import pytest
from msgspec.structs import replace

from sentinel.archives.record import Record
from sentinel.detectors.api import Maturity
from sentinel.detectors.severity import Severity
from sentinel.incidents.incident import Incident
from sentinel.report import cost_page
from sentinel.report.cost import CostGroup, CostOfFailures, Failure

_MAX_BYTES = 20 << 20


def failure(number, name="run"):
    incident = Incident(
        id=f"{number:016x}",
        run=f"csv:/runs/{name}-{number}",
        stream="",
        attempt=1,
        detector="kl-blowup",
        severity=Severity.CRITICAL,
        maturity=Maturity.STABLE,
        signal="kl",
        tag="kl",
        onset_step=number,
        onset_time=None,
        fired_step=number,
        fired_time=None,
        summary=f"KL is {number}, far above its usual level, and " + "so on " * 20,
    )
    run = Record(f"{name}-{number}", f"/runs/{name}-{number}", "csv")
    return replace(Failure.from_incident(run, incident), seconds=60.0 * number)


def group(failures):
    found = CostGroup("kl-blowup")
    for one in failures:
        found.add(one)
    return found


def cost(failures, more=0):
    return CostOfFailures("a million runs", 0, [("By fault", [group(failures)])], failures, more)


@pytest.mark.slow
def test_it_stays_below_its_limit_however_many_runs_there_are():
    page = cost_page.html(cost([failure(number) for number in range(5000)], 995_000))
    assert len(page.encode()) < _MAX_BYTES
    assert "995000 more failures" in page.replace(",", "")
    assert page.count("<details>") == 50


def test_text_of_a_run_is_text():
    found = cost([failure(1, "<script>alert(1)</script>|`x`")])
    assert "<script>" not in cost_page.html(found)
    assert "<script>" not in cost_page.markdown(found)
