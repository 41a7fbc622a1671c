"""`sentinel show`: everything about one incident that messages leave out."""

import json
import re
from pathlib import Path

import pytest

from sentinel.detectors.severity import Severity
from sentinel.storage.store import Store

pytestmark = pytest.mark.slow

LOGS = Path(__file__).parents[2] / "sample_logs"


@pytest.fixture
def watched(sentinel, tmp_path):
    """The first incident of a watched log of a real GRPO training."""
    sentinel("watch", LOGS / "kl-blowup", "--once", "--state-dir", "kept")
    with Store(tmp_path / "kept", create=False) as store:
        return next(one for one in store.incidents() if one.severity is Severity.CRITICAL)


def test_an_incident_has_evidence_curves_all_causes_and_the_command_that_acknowledges(sentinel, watched):
    told = sentinel("show", watched.id[:6], "--state-dir", "kept")
    assert told.status == 0
    lines = told.out.splitlines()
    assert lines[1] == "  severity   critical kl-blowup"
    assert [re.search(r"\((.+?)[,)]", line)[1] for line in lines if re.match("Likely|Or", line)] == [
        *watched.catalogue
    ]
    at = lines.index("Curves")
    assert {*lines[at + 1].split("  ")[1]} <= {*"▁▂▃▄▅▆▇█ "}
    assert "median of the last 10 points" in told.out[: told.out.index("Curves")]
    assert re.fullmatch(rf"Acknowledge: sentinel ack {watched.id} --state-dir .*kept", lines[-1])


def test_as_json_it_is_what_a_webhook_would_get(sentinel, watched):
    body = json.loads(sentinel("show", watched.id, "--state-dir", "kept", "--format", "json").out)
    assert body["incident"]["id"] == watched.id
    assert body["incident"]["evidence"]["value"] == watched.evidence["value"]
    assert [entry["id"] for entry in body["catalogue"]] == body["incident"]["catalogue"]
    assert body["run"]["framework"] == "trl-grpo"


def test_an_incident_is_shown_after_its_log_is_gone(sentinel, sick_run):
    sentinel("watch", sick_run, "--once", "--state-dir", "kept")
    (sick_run / "metrics.jsonl").unlink()
    with Store(Path("kept"), create=False) as store:
        (one,) = store.incidents()
    assert sentinel("show", one.id, "--state-dir", "kept").status == 0


def test_an_id_that_nothing_has_gets_one_line(sentinel, watched):
    told = sentinel("show", "zzz", "--state-dir", "kept")
    assert told.status == 2
    assert (
        told.err == "sentinel: no incident has an id that begins with 'zzz'; `sentinel status` shows them\n"
    )
