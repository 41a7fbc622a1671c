from sentinel_example.journal import JournalConfig

from sentinel.testing import SinkConformance
from sentinel.testing.sinks import NOTIFICATION, NOW


class TestJournal(SinkConformance):
    config = JournalConfig

    def working(self, scratch):
        return {"file": scratch / "journal.tsv"}

    def failing(self, scratch):
        return {"file": scratch / "no" / "such" / "directory"}


def test_a_line_begins_with_the_time_and_the_key(tmp_path):
    JournalConfig(file=tmp_path / "journal.tsv").open().send(NOTIFICATION, NOW)
    (line,) = (tmp_path / "journal.tsv").read_text().splitlines()
    assert line.startswith(f"{NOW:.0f}\t{NOTIFICATION.key}\tKL to the reference is 3.2 nats per token")
