"""What is left to judge of a log that is over."""

from sentinel.runs.ingested import Absorbed, Arrived
from sentinel.runs.log import RunLog
from sentinel.runs.state_codec import packed, unpacked
from sentinel.series.stream import Stream
from sentinel.sources.base import rest


def concluded(log: RunLog) -> Absorbed:
    """The rows to judge when the log is over, and the points that only its end makes sure.

    It may go on after all: neither what was read nor what is known of it changes.
    """
    left = rest(log.run.source, log.cursor)
    rows = []
    for name in dict.fromkeys([*log.streams, *(chunk.stream for chunk in left)]):
        own = [chunk for chunk in left if chunk.stream == name]
        stream = log.streams.get(name)
        if stream is None or own or not stream.named:
            stream = _copy(log, name)
        windows = [window for chunk in own for window in stream.extend(chunk).windows]
        rows += [Arrived(log.run.id, name, rest) for rest in (*windows, *stream.end())]
    return Absorbed(rows, rest=left)


def _copy(log: RunLog, name: str) -> Stream:
    """A copy of a stream, or a new one.

    The end names a stream that is too short by the tags that it has, but it may go on and get more of them.
    """
    copy = Stream(name, log.run.format, log.run.part, log.naming, log.views)
    if name in log.streams:
        copy.restore(unpacked(packed({"stream": log.streams[name].dump()}))["stream"])
    return copy
