"""A JSON document of any shape, rewritten as a whole at each save, or a file with one on each line."""

import json
import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import orjson

from sentinel.sources.base import Chunk, Cursor, PollResult, ReadIssue
from sentinel.sources.json import tree
from sentinel.sources.json.documents import LARGEST, SETTINGS_KEYS, is_complete, stated_settings
from sentinel.sources.readers.files import open_log, stamp
from sentinel.sources.readers.growing import nothing_new, refusal, unreadable
from sentinel.sources.readers.plain import flat, plain_text
from sentinel.sources.readers.words import counter

_EPISODES = ("max_episodes", "num_episodes", "n_episodes", "total_episodes", "episodes")
"""Settings that say how many episodes there will be."""

MAX_SERIES = 1024
"""Series of a document; further ones are not read."""


class DocumentLog(msgspec.Struct, frozen=True):
    """One document. Series with the same steps share a stream."""

    path: Path

    def poll(self, cursor: Cursor, limit: int) -> PollResult:
        """Return the points that were added since ``cursor``; see `sentinel.sources.base.Source`."""
        try:
            newest = stamp(self.path)
            if newest == cursor.get("newest"):
                return nothing_new(cursor)
            with open_log(self.path) as file:
                data = file.read(LARGEST + 1)
        except OSError as error:
            return unreadable(self.path, cursor, error)
        if len(data) > LARGEST:
            problem = f"is larger than {LARGEST >> 20} MiB and is not read"
            return refusal(cursor, newest, ReadIssue(self.path, "", problem))
        read_series = tree.read(is_complete(data), self.path.stem)[:MAX_SERIES]
        all_series = (each._replace(name=plain_text(each.name)) for each in read_series)
        document = {each.name: each for each in all_series}
        if not document:  # which is empty or being saved
            return PollResult({**cursor, "newest": newest})
        read_marks: Mapping[str, Sequence[Any]] = cursor.get("series", {})
        restarts: Sequence[str] = cursor.get("restarts", [])
        if any(
            name not in document or not _goes_on(document[name], read_mark)
            for name, read_mark in read_marks.items()
        ):
            if cursor.get("examined") != newest and not _is_whole(data):
                return PollResult({**cursor, "examined": newest})  # as it may still be being written
            restarts = sorted({str(read_mark[-1]) for read_mark in read_marks.values()})
            read_marks = {}
        series = {name: [*read_mark] for name, read_mark in read_marks.items()}
        chunks: list[Chunk] = []
        points = 0
        for stream, names in _streams(document, series, self.path.name).items():
            if points >= limit:
                break
            chunk = _series_chunk(stream, [document[name] for name in names], series, stream in restarts)
            points += chunk.value.size
            if chunk.value.size:
                chunks.append(chunk)
                restarts = [name for name in restarts if name != stream]
        more = any(
            name not in series or series[name][0] < len(each.values) for name, each in document.items()
        )
        state = {"newest": None if more else newest, "series": series, "restarts": [*restarts]}
        return PollResult(state, chunks, more=more, config=_settings(data, [*document.values()]))


def _goes_on(series: tree.Series, read_mark: Sequence[Any]) -> bool:
    """Return whether a series still has the last point that was read of it."""
    last_index = int(read_mark[0]) - 1
    return last_index < len(series.values) and _entry_fingerprint(series, last_index) == [*read_mark[1:3]]


def _settings(data: bytes, all_series: Sequence[tree.Series]) -> Mapping[str, Any]:
    """Return the settings that a document states beside its series, and as the plan how many episodes there
    will be, if its rows count these.
    """
    if not any(f'"{key}"'.encode() in data for key in SETTINGS_KEYS):
        return {}
    try:
        document = json.loads(data)
    except (ValueError, RecursionError):
        return {}
    stated = flat(stated_settings(document)) if isinstance(document, dict) else {}
    episodes = next((value for name, value in stated.items() if name.lower() in _EPISODES), None)
    if episodes is None or any(counter(each.unit) != "episode" for each in all_series):
        return stated
    return {"max_steps": episodes, **stated}


def _is_whole(data: bytes) -> bool:
    """Return whether the data are one document, and not lines of which the last ones may be missing."""
    try:
        orjson.loads(data)
    except orjson.JSONDecodeError:
        return False
    return True


def _entry_fingerprint(series: tree.Series, index: int) -> list[str]:
    return [str(series.steps[index]), repr(series.values[index])]


def _streams(
    document: Mapping[str, tree.Series], read_marks: Mapping[str, Sequence[Any]], file: str
) -> dict[str, list[str]]:
    """Return each stream's series. A series keeps its stream; new ones share one if their steps are equal."""
    streams: dict[str, list[str]] = {}
    by_steps: dict[tuple[int, ...], str] = {}
    for name, read_mark in read_marks.items():
        streams.setdefault(str(read_mark[-1]), []).append(name)
        by_steps.setdefault(document[name].steps, str(read_mark[-1]))
    for name, series in document.items():
        if name in read_marks:
            continue
        stream = by_steps.get(series.steps)
        if stream is None:
            stream = f"{file}:{name}" if streams else file
            by_steps[series.steps] = stream
        streams.setdefault(stream, []).append(name)
    return streams


def _series_chunk(
    stream: str, members: Sequence[tree.Series], read_marks: dict[str, list[Any]], restarted: bool
) -> Chunk:
    """Return the new points of some series, row by row, and note that they were read."""
    points: list[tuple[int, int, float]] = []
    for number, series in enumerate(members):
        count = int(read_marks[series.name][0]) if series.name in read_marks else 0
        points += [(index, number, value) for index, value in enumerate(series.values[count:], start=count)]
        last = len(series.values)
        read_marks[series.name] = [last, *_entry_fingerprint(series, last - 1), stream]
    points.sort(key=lambda point: point[:2])
    return Chunk(
        stream=stream,
        tags=[series.name for series in members],
        tag=np.array([number for _, number, _ in points], dtype=np.uint32),
        step=np.array([members[number].steps[index] for index, number, _ in points], dtype=np.int64),
        time=np.full(len(points), math.nan),
        value=np.array([value for _, _, value in points], dtype=np.float64),
        restarted=restarted and bool(points),
    )
