"""Messages read as the files in `golden/` show; see `messages`."""

import pytest

from tests.sinks.messages import FOLDER, FORMS, messages

pytestmark = pytest.mark.long

REMEDY = "run `make docs`, and read what it changes"


@pytest.mark.parametrize("form", FORMS)
def test_messages_read_as_the_golden(form):
    assert messages(form) == (FOLDER / f"{form}.txt").read_text(), REMEDY
