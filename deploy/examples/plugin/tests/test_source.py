import zlib
from pathlib import Path
from urllib.parse import quote

from sentinel_example.tally import FORMAT

from sentinel.testing import SourceConformance


class TallyWriter:
    def start(self, directory: Path):
        self.path = directory / "train.tally"
        self.path.touch()

    def log(self, step, values):
        rest = "\t".join([str(step), *(f"{quote(tag)}={value}" for tag, value in values.items())]).encode()
        with self.path.open("ab") as file:
            file.write(f"{zlib.crc32(rest):08x}\t".encode() + rest + b"\n")

    def close(self):
        pass


class TestTally(SourceConformance):
    format = FORMAT

    def writer(self):
        return TallyWriter()
