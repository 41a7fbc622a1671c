import pytest
from hypothesis import given
from hypothesis import strategies as st

from sentinel.sources.readers.files import as_utf_8, plain_utf_8, utf_16


@pytest.mark.slow
@given(st.binary(), st.sampled_from(["utf-16-le", "utf-16-be"]))
def test_text_has_as_many_bytes_as_before_even_if_it_is_broken(data, encoding):
    found = as_utf_8(data, encoding).decode().encode(encoding)
    assert len(data) - 3 <= len(found) <= len(data)
    whole = data.decode(encoding, errors="replace")
    assert whole.startswith(found.decode(encoding))


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "utf-16-le", "utf-16-be"])
def test_an_encoding_is_known_by_its_beginning(encoding):
    text = '{"損失": 1}'
    assert plain_utf_8(text.encode(encoding)).decode("utf-8-sig") == text


@pytest.mark.parametrize("data", [b"", b"{", b"\0\0{}\0\0", b"\x18\0\0\0\0", b'{"\0": 1}'])
def test_what_is_not_utf_16(data):
    assert utf_16(data) == ""
