"""The runs that every source is held by: what is logged, where it lies, and what makes no sense for whom."""

from sentinel.testing.sources import STEPS as STEPS
from sentinel.testing.sources import SourceConformance
from sentinel.testing.sources import contents as contents
from sentinel.testing.sources import files as files
from sentinel.testing.sources import largest as largest
from sentinel.testing.sources import play as play
from sentinel.testing.sources import points as points
from sentinel.testing.sources import write as write
from tests.sources.writers import ONLINE, WRITERS

OTHER_STEPS = [(step, {"train/loss": 8.0}) for step in range(4)]

IN_TRANSACTIONS = dict.fromkeys(
    ["mlflow_database", "trackio"],
    "SQLite shows the whole of a transaction or nothing, and finds broken pages",
)
ONE_OF_SEVERAL = {
    "trainer_state_checkpoints": "an older state stands in for one that is broken; see test_trainer_state"
}
A_FILE_EACH = {"json_numbered": "a record is a file of its own; see test_numbered"}
AS_A_WHOLE = {"neptune": "a Parquet file is read as a whole or not at all"}
SENSELESS = {
    "logged": {ONLINE: "no file can be torn, emptied or replaced; runs are rewound in test_wandb_online"},
    "torn": {**IN_TRANSACTIONS, **AS_A_WHOLE},
    "broken": {**IN_TRANSACTIONS, **ONE_OF_SEVERAL, **A_FILE_EACH, **AS_A_WHOLE},
    "unreadable": ONE_OF_SEVERAL,
}
"""What makes no sense for a source, by the fixture of the tests that are not held for it, and why."""

DOCUMENTS = {"json", "npz", "trainer_state"}
"""Formats whose files are one document or archive: what is broken is lost with all the rest."""

REWRITTEN = {"csv", "json_numbered", "neptune", "trainer_state_checkpoints", *DOCUMENTS, *IN_TRANSACTIONS}
"""Formats whose files are written anew at times: what was read before and comes again is not new."""

TEXTS = {"console"}
"""Formats in which all that is no record is plain text."""

FROM_THE_SECOND_ON = {"console", "json_numbered"}
"""Formats that are found by what they hold, at the second record."""

BY_NAME = {"mlflow", ONLINE}
"""Sources that keep each metric by its name, so that only within one there is an order in any case."""

PLAIN_NAMES = {"mlflow"}
"""Formats that allow only names of which a file can be made."""


def held(*fixtures):
    """The sources for which tests with these fixtures make sense."""
    senseless = {name for fixture in fixtures for name in SENSELESS.get(fixture, ())}
    return [name for name in [*WRITERS, ONLINE] if name not in senseless]


def suite_of(source):
    """What the conformance suite needs to know of a source."""
    suite = SourceConformance()
    suite.has_an_order = source not in BY_NAME
    suite.complains = source not in TEXTS
    suite.steps_until_found = 2 if source in FROM_THE_SECOND_ON else 1
    if source in PLAIN_NAMES:
        suite.names = ["spaces in a name", "a/b/c", "a.b: c-d"]
    return suite


def ordered(source, found):
    """The points in the order in which they must come."""
    return suite_of(source).ordered(found)
