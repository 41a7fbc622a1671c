import pytest
from msgspec.structs import replace

from sentinel.incidents.incident import Event, State
from sentinel.report.incident_page import lines
from sentinel.report.recorded import event_of
from tests.sinks.samples import INCIDENT, NOTIFICATION


def test_where_no_cause_is_known_the_page_says_what_to_do_first():
    bare = INCIDENT.replace(causes=(), first_step="Read the last lines that it printed.")
    assert (0, "Do: Read the last lines that it printed.") in [*lines(replace(NOTIFICATION, incident=bare))]
    assert not [text for indent, text in lines(NOTIFICATION) if text.startswith("Do:") and not indent]


@pytest.mark.parametrize(
    ("state", "ended", "event"),
    [
        (State.ESCALATED, "", Event.ESCALATED),
        (State.ESCALATED, "the run crashed", Event.ENDED),
        (State.RESOLVED, "the run crashed", Event.RESOLVED),
    ],
)
def test_an_incident_with_which_its_run_ended_is_shown_as_such(state, ended, event):
    assert event_of(INCIDENT.replace(state=state, ended=ended)) is event
