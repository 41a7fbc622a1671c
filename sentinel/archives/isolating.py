"""Finds the run that no process survives, so that it costs no other run its verdict."""

from collections.abc import Iterable, Iterator

import msgspec
from msgspec.structs import replace

from sentinel.archives.engine import Engine
from sentinel.archives.judging import Judge
from sentinel.archives.parts import Part, RunName
from sentinel.archives.record import Record, failed, packed_record


def isolated(
    engine: Engine, judge: Judge, archive_parts: Iterable[Part]
) -> Iterator[tuple[Part, list[bytes]]]:
    """Yield the packed records of all parts. A part without a result is tried again alone, then in halves.

    The record of what has no result then says why.
    """
    without: list[Part] = []
    for part, part_result in engine.results(judge, archive_parts):
        if isinstance(part_result, str):
            without.append(part)
        else:
            yield part, part_result
    for part in without:
        yield part, _alone(engine, judge, part)


def _alone(engine: Engine, judge: Judge, part: Part) -> list[bytes]:
    [(_, part_result)] = engine.results(judge, [part])
    if not isinstance(part_result, str):
        return part_result
    if not part.only:
        [(_, run_names)] = engine.results(judge.names, [part])
        runs = (
            []
            if isinstance(run_names, str)
            else [msgspec.msgpack.decode(run, type=RunName) for run in run_names]
        )
        part = replace(part, only=runs)
    if len(part.only) > 1:
        return [record for half in part.halves() for record in _alone(engine, judge, half)]
    if part.only:
        return [packed_record(failed(part.only[0], part_result))]
    first_folder, *other_folders = (folder.path for folder in part.folders)
    further = f" (also {len(other_folders)} other directories)" if other_folders else ""
    return [packed_record(Record(first_folder, first_folder, "", failure=f"{part_result}{further}"))]
