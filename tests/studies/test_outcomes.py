"""The form of the truth table; the logs are not in the project."""

from sentinel.series.roles.role import Direction, Split, Unit
from studies.outcomes.table import KINDS, NOTHING, PARTS, rows


def test_each_run_stands_in_the_table_once() -> None:
    table = rows()
    assert len(table) > 300
    assert len({(row.path, row.format) for row in table}) == len(table)


def test_every_row_is_in_the_words_of_roles() -> None:
    for row in rows():
        assert row.part in PARTS, row.path
        if row.kind == NOTHING:
            assert row.outcome == NOTHING, row.path
            continue
        assert row.kind in KINDS, row.path
        assert row.direction in {Direction.HIGHER, Direction.LOWER}, row.path
        assert row.split in {Split.TRAIN, Split.HELD_OUT}, row.path
        assert row.unit in {*Unit}, row.path


def test_no_repository_is_in_two_parts() -> None:
    parts: dict[str, set[str]] = {}
    for row in rows():
        parts.setdefault(row.path.split("/")[1], set()).add(row.part)
    assert all(len(names) == 1 for names in parts.values())
