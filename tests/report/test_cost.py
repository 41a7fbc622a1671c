"""What failures cost is told with GPU-hours only where the number of GPUs is known."""

from msgspec.structs import replace

from sentinel.report.cost import lines
from tests.report.test_cost_page import cost, failure, group


def sized(number, gpus):
    return replace(failure(number), gpus=gpus, seconds=3600.0)


def test_gpu_hours_are_told_where_they_are_known():
    assert group([sized(1, None)]).spent == "1 h after the onset"
    assert group([sized(1, 8.0), sized(2, 2.0)]).spent == "2 h after the onset, 10.0 GPU-hours"
    known = group([sized(1, 8.0), sized(2, None)]).spent
    assert known == "2 h after the onset, 8.0 GPU-hours in the 1 whose size is known"


def test_the_lines_show_the_fifty_worst():
    text = "\n".join(line for _, line in lines(cost([failure(number) for number in range(60)])))
    assert text.count("critical kl-blowup:") == 50
