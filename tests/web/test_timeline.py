"""What the timeline of the fleet counts; `tests/browser/test_live.py` looks at it."""

from types import SimpleNamespace

import pytest

from sentinel.detectors.severity import Severity
from sentinel.runs.state import GOING_ON, RunState
from sentinel.web.timeline import fitting_period, fleet_time
from tests.sinks.samples import INCIDENT

DAY = 86400.0


def run(first, last, gpus=None, state=RunState.FINISHED, name=INCIDENT.run):
    facts = SimpleNamespace(first_time=first, last_time=last, plan={"world_size": gpus} if gpus else {})
    row = SimpleNamespace(id=name)
    return SimpleNamespace(
        row=row,
        stored=SimpleNamespace(metadata=facts),
        goes_on=state in GOING_ON,
        stands_for_its_training=True,
    )


def trouble(begin, end):
    return INCIDENT.replace(
        onset_time=begin, fired_time=begin, last_time=end, severity=Severity.WARNING, inhibited_by=None
    )


def test_what_several_incidents_of_a_run_cover_counts_once_on_each_gpu():
    found = [trouble(0.0, 3600.0), trouble(1800.0, 7200.0)]
    told = fleet_time([run(0.0, 9000.0, gpus=8.0)], found, DAY, DAY)
    assert (told.hours, told.gpu_hours) == (2.0, 16.0)


def test_the_number_of_gpus_is_never_guessed():
    told = fleet_time([run(0.0, 9000.0)], [trouble(0.0, 3600.0)], DAY, DAY)
    assert (told.hours, told.gpu_hours, told.ill, told.telling) == (1.0, 0.0, 1, 0)


def test_only_what_lies_within_the_period_counts():
    found = [trouble(-3600.0, 3600.0), trouble(-7200.0, -3600.0)]
    told = fleet_time([run(-7200.0, 3600.0)], found, DAY, DAY)
    assert told.hours == 1.0
    assert [len(bars) for bars in told.bars.values()] == [1]


def test_trouble_of_a_run_that_goes_on_lasts_until_now():
    found = [trouble(DAY - 7200.0, DAY - 7000.0)]
    assert fleet_time([run(0.0, DAY, state=RunState.RUNNING)], found, DAY, DAY).hours == 2.0


def test_a_run_is_alive_from_its_first_point_to_its_last():
    told = fleet_time([run(DAY / 4, DAY / 2)], [], DAY, DAY)
    assert (told.alive[0], told.alive[45], told.alive[-1]) == (0, 1, 0)
    assert told.curve.startswith("0,24 ")


def test_runs_without_times_are_counted():
    told = fleet_time([run(None, None, name="other"), run(0.0, 3600.0)], [], DAY, DAY)
    assert told.timeless == 1


@pytest.mark.parametrize(
    ("times", "period"),
    [
        ([], "30d"),
        ([(None, None)], "30d"),
        ([(99.0 * DAY + 100, 100.0 * DAY)], "1d"),
        ([(99.5 * DAY, 100.0 * DAY), (95.0 * DAY, 96.0 * DAY)], "7d"),
        ([(99.5 * DAY, 100.0 * DAY), (1.0 * DAY, 2.0 * DAY)], "30d"),
        ([(39.5 * DAY, 40.0 * DAY)], "61d"),
    ],
)
def test_the_period_fits_the_runs(times, period):
    assert fitting_period([run(*one) for one in times], 100.0 * DAY) == period


@pytest.mark.slow  # starts a server
def test_the_page_of_a_period_says_what_lies_in_it(client):
    page = client.get("/time?since=7d")
    assert page.status_code == 200
    assert "Hours in trouble" in page.text
    assert client.get("/time").status_code == 200
    assert client.get("/time?since=soon").status_code == 400
