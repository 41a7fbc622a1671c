import pytest
from hypothesis import given
from hypothesis import strategies as st

from sentinel.sources.readers.files import as_utf_8, encoding_of, plain_utf_8


@pytest.mark.slow
@given(st.binary(), st.sampled_from(["utf-16-le", "utf-16-be", "gb18030"]))
def test_text_has_as_many_bytes_as_before_even_if_it_is_broken(data, encoding):
    found = as_utf_8(data, encoding).decode().encode(encoding)
    assert len(data) - 3 <= len(found) <= len(data)
    if encoding != "gb18030":
        whole = data.decode(encoding, errors="replace")
        assert whole.startswith(found.decode(encoding))


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "utf-16-le", "utf-16-be"])
def test_an_encoding_is_known_by_its_beginning(encoding):
    text = '{"損失": 1}'
    assert plain_utf_8(text.encode(encoding)).decode("utf-8-sig") == text


CHINESE = "训练开始 学习率:0.1\n当前轮次:1/50 | 当前损失值:10.113 | 当前准确率:0.25%\n"


def test_chinese_as_windows_writes_it_is_known_by_its_beginning():
    assert plain_utf_8(CHINESE.encode("gbk")).decode() == CHINESE
    assert encoding_of(CHINESE.encode()) == ""
    assert encoding_of("Épochs terminées: déjà évalué à l'été".encode("latin-1")) == ""


@pytest.mark.parametrize("data", [b"", b"{", b"\0\0{}\0\0", b"\x18\0\0\0\0", b'{"\0": 1}'])
def test_what_is_not_encoding_of(data):
    assert encoding_of(data) == ""
