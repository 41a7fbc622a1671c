"""The grammar of goldens."""

import numpy as np
import pytest

from sentinel.detectors.discovery import all_detectors
from tests.detectors import golden
from tests.detectors.golden import Stream

KL = all_detectors()["kl-blowup"]


def values(text):
    return Stream.parse("loss", text).value.tolist()


def test_points_repeat_and_change():
    assert values("2.5 1e-5 -3x2") == [2.5, 1e-5, -3, -3]
    assert values("1+0.5x3 1-0.5x3 1*2x4") == [1, 1.5, 2, 1, 0.5, 0, 1, 2, 4, 8]
    assert values("(0 1x2)x2") == [0, 1, 1, 0, 1, 1]


def test_missing_points_leave_their_step_out():
    stream = Stream.parse("loss", "1 _x2 4", every=10, start=5)
    assert stream.step.tolist() == [5, 35]


def test_what_is_not_finite_is_logged():
    assert np.isnan(values("nan")[0])
    assert values("inf -inf") == [np.inf, -np.inf]


def test_noise_is_of_the_size_told_and_the_same_every_time():
    assert np.std(values("10~2x2000")) == pytest.approx(2, rel=0.1)
    assert np.std(values("10~50%x2000")) == pytest.approx(5, rel=0.1)
    assert values("1+0.1~0.2x20") == values("1+0.1~0.2x20")


@pytest.mark.parametrize("text", ["2.0x", "1+x5", "x5", "1..2", "((1)x2)x2", "1~x3"])
def test_a_word_outside_the_grammar_is_named(text):
    with pytest.raises(ValueError, match=r"grammar|float"):
        values(text)


@pytest.mark.parametrize(
    ("page", "complaint"),
    [
        ("### A\n```stream kl\n1\n```\n", "0 expect blocks"),
        ("### A\n```stream kl\n1\n```\n```expect\n```\n```expect\n```\n", "2 expect blocks"),
        ("### A\n```stream kll\n1\n```\n```expect\n```\n", "kll"),
        ("### A\n```stream kl step=2\n1\n```\n```expect\n```\n", "unknown option step"),
        ("### A\n```stream kl\n1x\n```\n```expect\n```\n", "'1x' is not in the stream grammar"),
    ],
)
def test_a_broken_page_is_told_by_file_and_heading(page, complaint, tmp_path, monkeypatch):
    monkeypatch.setattr(golden, "FOLDER", tmp_path)
    golden.path_of(KL).write_text(page)
    with pytest.raises(ValueError, match=rf"kl_blowup\.md, 'A': .*{complaint}"):
        golden.scenarios(KL)


@pytest.mark.slow
def test_writing_fills_in_expectations_and_nothing_else(tmp_path, monkeypatch):
    page = golden.path_of(KL).read_text()
    monkeypatch.setattr(golden, "FOLDER", tmp_path)
    copy = golden.path_of(KL)
    copy.write_text(page.replace("9  clean\n", "12  critical\n"))
    golden.rewrite(KL)
    assert copy.read_text() == page
