"""The tables by which runs are judged, beside the files that people edit."""

from tests.each import each
from tests.tools import tables


@each(tables.texts(), lambda table: table[0].name)
def test_every_table_holds_what_its_files_say(table):
    path, content = table
    assert path.read_bytes() == content, "run `make docs`"
