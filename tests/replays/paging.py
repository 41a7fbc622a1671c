"""Archives of runs, each given as the kinds that page in it."""

from msgspec.structs import replace

from sentinel.calibration.page_statistics import ArchivedRun, Kind, Pages, Stratum, Stricter
from tests.sinks.samples import INCIDENT

FAR = Kind("kl-blowup", "far")
SPIKE = Kind("loss-spike", "single")
STALL = Kind("stream-stall", "silent")
SHIFT = Kind("drift", "slow")


def archive(healthy, others=()):
    """An archive of runs that paged for these kinds."""
    return Pages(*({str(i): archived(kinds) for i, kinds in enumerate(runs)} for runs in (healthy, others)))


def archived(kinds, framework="", ended_at=None):
    return ArchivedRun(dict.fromkeys(kinds, INCIDENT), Stratum(framework, 100), ended_at)


def with_factors(paged, kinds_by_factor):
    """A run that pages for some kinds, and for others once the detector of spikes is stricter by a factor."""
    stricter = {
        Stricter(SPIKE.detector, factor): archived(kinds) for factor, kinds in kinds_by_factor.items()
    }
    return replace(archived(paged), stricter=stricter)


def factored(healthy, others=()):
    """The same archive of such runs."""
    return Pages(*({str(i): run for i, run in enumerate(runs)} for runs in (healthy, others)))


def daily(*runs):
    """An archive of runs of ten days, each given as the kinds that page on its days."""
    days = [{100 + day: frozenset(kinds) for day, kinds in run.items()} for run in runs]
    return Pages(
        {
            str(at): ArchivedRun({}, Stratum("", 100), 109.5 * 86400, range(100, 110), kinds)
            for at, kinds in enumerate(days)
        },
        daily=True,
    )
