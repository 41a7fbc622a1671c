"""The JSON Schemas of what sentinel writes for programs, in deploy/schema/: `make docs` rewrites them."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter

from sentinel.archives.tables import IncidentColumns, RunColumns
from sentinel.mcp_server.bodies import IncidentsBody, RunsBody
from sentinel.report.json import ComparedBody, LineBody, ListingBody, ReplayBody
from sentinel.report.overview import OverviewBody
from sentinel.report.pages import PageBody
from sentinel.report.status_body import StatusBody
from sentinel.sinks.webhook import DigestBody, WebhookBody
from sentinel.waiting.waiting import WaitBody, WaitIncidentBody

FOLDER = Path(__file__).parents[2] / "deploy" / "schema"
FORMS: dict[str, Any] = {
    "replay": ReplayBody,  # sentinel replay --format json
    "replay-line": LineBody,  # a line of sentinel replay --format jsonl
    "path": OverviewBody,  # sentinel PATH --format json
    "runs": ListingBody,  # sentinel runs --format json
    "compare": ComparedBody,  # sentinel compare --format json
    "status": StatusBody,  # sentinel status --format json
    "wait": WaitBody | WaitIncidentBody,  # sentinel wait --format json, and the tool of that name
    "explain": PageBody,  # sentinel explain NAME --format json
    "agent-runs": RunsBody,  # the tool list_runs
    "agent-incidents": IncidentsBody,  # the tool list_incidents
    "archive-run": RunColumns,  # a row of the tables of sentinel archive judge
    "archive-incident": IncidentColumns,
    "webhook": WebhookBody,
    "webhook-digest": DigestBody,
}


def texts() -> Iterator[tuple[Path, str]]:
    """Each file with what it ought to hold."""
    for name, form in FORMS.items():
        schema = {
            "$schema": "https://json-schema.org/draft/2020-12/schema",
            **TypeAdapter(form).json_schema(mode="serialization"),
        }
        yield FOLDER / f"{name}.json", json.dumps(schema, indent=2) + "\n"


def fits(form: str, text: str | bytes) -> None:
    """Raises an error unless the JSON is of this form, and holds nothing that the form does not name."""
    adapter = TypeAdapter(FORMS[form])
    given = json.loads(text)
    assert json.loads(adapter.dump_json(adapter.validate_json(text, strict=True))) == given
