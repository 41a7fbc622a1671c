"""The runs that every source is held by: what is logged, where it lies, and what makes no sense for whom."""

from tests.sources.writers import ONLINE, WRITERS

STEPS = [(step, {"train/loss": 4.0 - step / 4, "lr": 2.0**-step}) for step in range(8)]
OTHER_STEPS = [(step, {"train/loss": 8.0}) for step in range(4)]

IN_TRANSACTIONS = dict.fromkeys(
    ["mlflow_database", "trackio"],
    "SQLite shows the whole of a transaction or nothing, and finds broken pages",
)
ONE_OF_SEVERAL = {
    "trainer_state_checkpoints": "an older state stands in for one that is broken; see test_trainer_state"
}
AS_A_WHOLE = {"neptune": "a Parquet file is read as a whole or not at all"}
SENSELESS = {
    "logged": {ONLINE: "no file can be torn, emptied or replaced; runs are rewound in test_wandb_online"},
    "torn": {**IN_TRANSACTIONS, **AS_A_WHOLE},
    "broken": {**IN_TRANSACTIONS, **ONE_OF_SEVERAL, **AS_A_WHOLE},
    "unreadable": ONE_OF_SEVERAL,
}
"""What makes no sense for a source, by the fixture of the tests that are not held for it, and why."""

DOCUMENTS = {"json", "trainer_state"}
"""Formats whose files are one JSON document: what is broken is lost with all the rest."""

REWRITTEN = {"csv", "neptune", "trainer_state_checkpoints", *DOCUMENTS, *IN_TRANSACTIONS}
"""Formats whose files are written anew at times: what was read before and comes again is not new."""

TEXTS = {"console"}
"""Formats that are found by what they hold, at the second record, and in which all else is plain text."""

BY_NAME = {"mlflow", ONLINE}
"""Sources that keep each metric by its name, so that only within one there is an order in any case."""

PLAIN_NAMES = {"mlflow"}
"""Formats that allow only names of which a file can be made."""


def held(*fixtures):
    """The sources for which tests with these fixtures make sense."""
    senseless = {name for fixture in fixtures for name in SENSELESS.get(fixture, ())}
    return [name for name in [*WRITERS, ONLINE] if name not in senseless]


def write(writer, directory, steps):
    directory.mkdir(exist_ok=True)
    writer.start(directory)
    for step, values in steps:
        writer.log(step, values)
    writer.close()
    return directory


def files(directory):
    return sorted(path for path in directory.rglob("*") if path.is_file())


def largest(directory):
    return max(files(directory), key=lambda path: path.stat().st_size)


def contents(directory):
    return {path.relative_to(directory): path.read_bytes() for path in files(directory)}


def play(directory, data, begin, end):
    """Append what lies between two places of the files' bytes, one file behind the other."""
    for name, content in data.items():
        if part := content[max(begin, 0) : max(end, 0)]:
            (directory / name).parent.mkdir(parents=True, exist_ok=True)
            with (directory / name).open("ab") as file:
                file.write(part)
        begin = begin - len(content)
        end = end - len(content)


def points(steps):
    return [(tag, step, str(float(value))) for step, values in steps for tag, value in values.items()]


def ordered(source, found):
    """The points in the order in which they must come."""
    return sorted(found, key=lambda point: point[0]) if source in BY_NAME else found
