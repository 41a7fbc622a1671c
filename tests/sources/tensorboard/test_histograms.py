"""Histograms in event files, as the writers of PyTorch, TensorFlow and Keras put them there."""

import math

import numpy as np
import pytest
from tensorboard.compat.proto.summary_pb2 import HistogramProto, Summary
from tensorboard.compat.proto.tensor_pb2 import TensorProto
from tensorboard.plugins.histogram.metadata import create_summary_metadata
from tensorboard.plugins.histogram.summary_v2 import histogram_pb
from tensorboardX import SummaryWriter

from sentinel.sources.tensorboard import histograms as tensorboard_histograms
from tests.sources.reader import Reader
from tests.sources.tensorboard.writer import NAME, VERSION, event, scalar

RNG = np.random.default_rng(0)
NORMAL = RNG.normal(0.5, 2.0, 20_000)
SPARSE = np.where(RNG.random(20_000) < 0.9, 0.0, RNG.normal(0, 1e-3, 20_000))
TAILED = RNG.standard_t(5, 20_000) * 1e-4
STATISTICS = ("mean", "std", "zero_share", "kurtosis")


def kurtosis(data):
    return np.mean((data - data.mean()) ** 4) / data.var() ** 2


def read(directory, *values):
    """Statistics of the last event, by their names."""
    (directory / NAME).write_bytes(VERSION + b"".join(event(value) for value in values))
    reader = Reader(directory).poll()
    assert not reader.read_issues
    return {tag.rpartition("#")[2]: float(value) for tag, _, value in reader.points[-len(STATISTICS) :]}


def tensor(shape, metadata=None, **fields):
    dims = {"dim": [{"size": size} for size in shape]}
    content = TensorProto(tensor_shape=dims, **fields)
    plugin = create_summary_metadata("", "") if metadata is None else metadata
    return Summary.Value(tag="weights", tensor=content, metadata=plugin)


@pytest.mark.slow
@pytest.mark.parametrize("limit", [1, 2, 1000])
def test_what_tensorboardx_writes(tmp_path, limit):
    with SummaryWriter(str(tmp_path)) as writer:
        for step, data in enumerate([NORMAL, SPARSE, TAILED]):
            writer.add_scalar("loss", step, step)
            writer.add_histogram("fc1/weights", data, step)
            writer.add_image("sample", np.zeros((3, 4, 4)), step)
    reader = Reader(tmp_path).poll(limit)
    tags = ["loss", *(f"fc1/weights#{name}" for name in STATISTICS)]
    assert [point[:2] for point in reader.points] == [(tag, step) for step in range(3) for tag in tags]
    for place, data in enumerate([NORMAL, SPARSE, TAILED]):
        mean, std, zero_share, tails = (float(p[2]) for p in reader.points[5 * place + 1 : 5 * place + 5])
        assert mean == pytest.approx(data.mean(), abs=0.01 * data.std())
        assert std == pytest.approx(data.std(), rel=0.01)
        assert zero_share == np.mean(data == 0)
        assert tails == pytest.approx(kurtosis(data), rel=0.05)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:The inplace keyword")  # in tbparse, of pandas
def test_tbparse_sees_the_same_buckets(tmp_path):
    from tbparse import SummaryReader  # pandas is slow to import

    with SummaryWriter(str(tmp_path)) as writer:
        writer.add_histogram("weights", NORMAL, 3)
    [log] = tmp_path.iterdir()
    [row] = SummaryReader(str(log), event_types={"histograms"}).histograms.itertuples()
    edges = np.clip([NORMAL.min(), *row.limits], NORMAL.min(), NORMAL.max())
    middle = (edges[1:] + edges[:-1]) / 2
    share = row.counts / row.counts.sum()
    mean = share @ middle
    points = Reader(tmp_path).poll().points
    assert [step for _, step, _ in points] == [row.step] * 4
    assert float(points[0][2]) == pytest.approx(mean)
    assert float(points[1][2]) == pytest.approx(np.sqrt(share @ (middle - mean) ** 2))


def test_what_tensorflow_writes(tmp_path):
    value = Summary.Value.FromString(histogram_pb("weights", NORMAL).value[0].SerializeToString())
    found = read(tmp_path, value)
    assert found["mean"] == pytest.approx(NORMAL.mean(), abs=0.02)
    assert found["std"] == pytest.approx(NORMAL.std(), rel=0.02)
    assert found["kurtosis"] == pytest.approx(kurtosis(NORMAL), rel=0.05)
    edges = np.linspace(NORMAL.min(), NORMAL.max(), 31)
    at = np.searchsorted(edges, 0.0)
    assert found["zero_share"] == np.mean((edges[at - 1] <= NORMAL) & (edges[at] > NORMAL))


def test_values_that_are_all_equal_have_no_spread(tmp_path):
    found = read(tmp_path, histogram_pb("weights", np.full(100, 0.25)).value[0])
    assert (found["mean"], found["std"], found["zero_share"]) == (0.25, 0.0, 0.0)
    assert math.isnan(found["kurtosis"])


def test_the_outer_buckets_end_with_the_values(tmp_path):
    """TensorFlow's first version writes the largest float as the last limit."""
    limits = [-1e308, 1.0, 1.7e308]
    counts = [0.0, 1.0, 1.0]
    found = read(
        tmp_path, {"tag": "w", "histo": HistogramProto(min=0.5, max=3.0, bucket_limit=limits, bucket=counts)}
    )
    assert (found["mean"], found["std"], found["zero_share"]) == (1.375, 0.625, 0.0)


def test_scalars_and_histograms_of_one_event_keep_their_order(tmp_path):
    histogram = {"tag": "w", "histo": HistogramProto(max=1.0, bucket_limit=[1.0], bucket=[1.0])}
    values = [Summary.Value(tag="a", simple_value=1), histogram, Summary.Value(tag="b", simple_value=2)]
    (tmp_path / NAME).write_bytes(VERSION + event(*values, step=1))
    tags = [tag for tag, _, _ in Reader(tmp_path).poll().points]
    assert tags == ["a", *(f"w#{name}" for name in STATISTICS), "b"]


@pytest.mark.parametrize(
    "value",
    [
        Summary.Value(tag="empty", histo=HistogramProto()),
        Summary.Value(tag="no counts", histo=HistogramProto(bucket_limit=[1.0], bucket=[0.0])),
        Summary.Value(tag="uneven", histo=HistogramProto(bucket_limit=[1.0, 2.0], bucket=[1.0])),
        histogram_pb("nothing", np.array([])).value[0],
        tensor([1 << 40, 3], dtype="DT_DOUBLE", double_val=[1.0]),
        tensor([2, 3], dtype="DT_DOUBLE", tensor_content=b"torn"),
        tensor([1, 3], dtype="DT_STRING", string_val=[b"a", b"b", b"c"]),
        tensor([1, 3], dtype="DT_INVALID"),
        tensor([3], dtype="DT_DOUBLE", double_val=[0.0, 1.0, 1.0]),
        tensor([1, 4], dtype="DT_DOUBLE", double_val=[0.0, 1.0, 1.0, 1.0]),
        tensor([-1, 3], dtype="DT_DOUBLE", double_val=[1.0]),
        tensor([1, 3], metadata={}, dtype="DT_DOUBLE", double_val=[0.0, 1.0, 1.0]),
    ],
)
def test_what_is_no_histogram_is_left_out(tmp_path, value):
    (tmp_path / NAME).write_bytes(VERSION + event(value) * 100 + scalar("a", 1, 1.0))
    reader = Reader(tmp_path).poll()
    assert reader.points == [("a", 1, "1.0")]
    assert not reader.read_issues


@pytest.mark.parametrize("odd", [math.nan, math.inf, 1e308])
def test_odd_numbers_are_read(tmp_path, odd):
    histogram = HistogramProto(min=-odd, max=odd, bucket_limit=[-odd, 0.0, odd], bucket=[1.0, odd, 3.0])
    assert set(read(tmp_path, {"tag": "w", "histo": histogram})) == set(STATISTICS)


def test_a_histogram_of_too_many_buckets_is_skipped(tmp_path, monkeypatch):
    monkeypatch.setattr(tensorboard_histograms, "_MAX_BUCKETS", 29)
    legacy = Summary.Value(tag="w", histo=HistogramProto(max=1.0, bucket_limit=[1.0] * 30, bucket=[1.0] * 30))
    assert not read(tmp_path, histogram_pb("weights", NORMAL).value[0], legacy)
