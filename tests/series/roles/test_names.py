"""What the whole name of a series says, name by name (names.tsv, read by a person)."""

from pathlib import Path

import pytest

from sentinel.series.roles.names import reading

LINES = Path(__file__).with_name("names.tsv").read_text(encoding="utf-8").splitlines()
ROWS = [line.split("\t") for line in LINES[1:]]


@pytest.mark.parametrize("row", ROWS, ids=[row[0] for row in ROWS])
def test_a_name_says_the_role_the_split_the_direction_and_the_unit(row):
    name, *expected = row
    role = reading(name).role
    found = ["none", "-", "-", "-", "-"]
    if role is not None:
        found = [role.kind, role.measure, role.split, role.direction, role.unit]
    assert found == expected
