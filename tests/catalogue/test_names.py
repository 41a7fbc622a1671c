"""The names of parameters and metrics that pages use stand in the source of a library, or in what we read."""

import pytest

from tests.tools import names


def known():
    tables = dict(names.read())
    elsewhere = tables.pop("elsewhere")
    return {*elsewhere}.union(*(one["names"].split() for one in tables.values())), tables, elsewhere


@pytest.mark.slow
def test_names_on_pages_stand_in_a_library_or_are_read_by_sentinel():
    there, _, _ = known()
    there |= names.ours()
    unknown = {name: pages for name, pages in names.named().items() if name not in there}
    assert unknown == {}, "mend the page, or run `python -m tests.tools.names SITE-PACKAGES`"


def test_the_list_holds_no_name_that_no_page_uses_and_says_where_each_stands():
    there, tables, elsewhere = known()
    assert there <= {*names.named()}
    assert all(one["version"] for one in tables.values())
    assert "?" not in elsewhere.values()


@pytest.mark.slow
def test_a_library_is_searched_for_what_is_left(tmp_path):
    for library in names.LIBRARIES:
        (tmp_path / library).mkdir()
        (tmp_path / f"{library}-1.2.dist-info").mkdir()
    (tmp_path / "trl" / "config.py").write_text("entropy_coef: float = 0.0")
    written = "".join(names.lines(tmp_path, {"num_workers": "here"}))
    assert '[trl]\nversion = "1.2"\nnames = """\nentropy_coef\n"""' in written
    assert 'num_workers = "here"\n' in written
    assert 'clip_grad_norm_ = "?"\n' in written
