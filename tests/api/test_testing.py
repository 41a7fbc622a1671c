"""The pytest plugin, in tests of its own."""

from pathlib import Path

import pytest

pytestmark = pytest.mark.slow  # each runs pytest

SAMPLES = Path(__file__).parents[2] / "sample_logs"


@pytest.fixture
def tested(pytester):
    """The result of a test with these lines, which may use the plugin."""

    def run(*lines):
        body = "\n".join(f"    {line}" for line in lines)
        pytester.makepyfile(f"def test_it(assert_healthy):\n{body}\n")
        return pytester.runpytest_inprocess("-p", "sentinel.testing", "-p", "no:cacheprovider")

    return run


def test_a_healthy_run_passes_and_gives_its_report(tested):
    healthy = str(SAMPLES / "healthy-rl")
    done = tested(f"report = assert_healthy({healthy!r})", "assert report.runs[0].judged_by > 10")
    done.assert_outcomes(passed=1)


@pytest.mark.long
def test_a_sick_run_fails_with_what_a_person_reads(tested):
    sick = str(SAMPLES / "kl-blowup")
    done = tested(f"assert_healthy({sick!r})")
    done.assert_outcomes(failed=1)
    done.stdout.fnmatch_lines(
        [
            "*AssertionError: Critical: The KL to the reference is 7.13, above 2.*",
            "*critical kl-blowup  onset at step 62, fired at 70*",
            "*what to try  R1*",
            "*1 log was read; * detectors could judge it",
        ]
    )
    assert "is_healthy" not in done.stdout.str()  # the report says it all, and not a line of sentinel's code


@pytest.mark.long
def test_options_are_those_of_a_replay(tested):
    sick = str(SAMPLES / "kl-blowup")
    tested(f"assert_healthy({sick!r}, only=['loss-spike'])").assert_outcomes(passed=1)
