"""Messages of every detector read as the files in `golden/` show; see `messages`."""

import pytest

from tests.sinks.messages import FOLDER, FORMS, messages

pytestmark = pytest.mark.long

REMEDY = "run `make docs`, and read what it changes"


@pytest.mark.parametrize("form", FORMS)
def test_every_detector_s_message_reads_as_its_golden(form):
    assert messages(form) == (FOLDER / f"{form}.txt").read_text(), REMEDY
