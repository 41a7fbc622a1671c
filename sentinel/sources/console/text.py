"""Reads the printed text of one poll: which lines count, what progress bars overwrote, who printed what."""

import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from sentinel.common.lazy_pattern import lazy_pattern
from sentinel.sources.base import Chunk, Cursor, ReadIssue
from sentinel.sources.console.bars import BAR, is_kept, redrawn, states
from sentinel.sources.console.lines import counts_metrics, parse, planned
from sentinel.sources.console.passages import MAX_LINE, MAX_TEXT, Passages
from sentinel.sources.console.prefilter import Wanted, may_count
from sentinel.sources.console.writer import PrintedMetrics
from sentinel.sources.readers.growing import Mark, size_of
from sentinel.sources.readers.plain import Plain

_MAX_BAR = 1000  # bytes before its count
_MAX_WRITERS = 16  # processes; what further ones print is ignored

_TRAINER_SUMMARY = (b"{'train_runtime'", b'{"train_runtime"')  # of Hugging Face's Trainer

_WRITER = lazy_pattern(
    r"\[(?:rank|default)\d{1,5}\]:? ?"  # torchrun
    r"|(?P<number>\[\d{1,5}\](?!\t):? ?"  # MPICH, unlike the rounds of XGBoost and LightGBM
    r"|\s{0,4}\d{1,5}: (?=\S)(?!\S{1,30}, \S{1,30} avg))"  # srun, unlike the iterations of Darknet
    r"|\([\w:.]{1,80} pid=\d{1,9}(?:, ip=[\w.:]{1,40})?\) ?"  # Ray
)
_CONTROL = lazy_pattern(r"\x1b(?:\[[0-9;?]*+[ -/]*+[@-~]?|\][^\x07\x1b\n\r]*+\x07?|[^\n\r])|[\x08\ufeff]")


class Text:
    """The lines of one poll."""

    def __init__(self, path: Path, cursor: Cursor, restarted: bool) -> None:
        writers: Mapping[str, Mapping[str, Any]] = cursor.get("writers", {})
        if restarted:
            writers = {name: {"restarted": True} for name in writers}
        self.read_issues: list[ReadIssue] = []
        self.lines = Passages()
        self.config: dict[str, Plain] = {}  # printed before the first point
        self._path = path
        self._writers = {name: PrintedMetrics(memory) for name, memory in writers.items()}
        self._unused = PrintedMetrics({})  # for the next process that prints metrics
        self._overlong: bool = (
            cursor.get("overlong", False) and not restarted
        )  # whether the next bytes belong to a line that is skipped
        self._step = self._last_step()  # before the next line

    @property
    def count(self) -> int:
        """The number of points so far."""
        return sum(len(writer.records) + len(writer.rows.records) for writer in self._writers.values())

    def memory(self, mark: Mark) -> dict[str, Any]:
        """Return the next cursor."""
        writers = {name: writer.memory() for name, writer in self._writers.items()}
        return {"mark": mark, "writers": writers, "overlong": self._overlong}

    def chunks(self) -> list[Chunk]:
        """Return the points that were read, a chunk for each process."""
        return [
            part.records.chunk(":".join(filter(None, (self._path.name, name, kind))), part.restarted)
            for name, writer in self._writers.items()
            for kind, part in (("", writer), ("rows", writer.rows))
            if part.records
        ]

    def parse(self, data: bytes, offset: int, limit: int) -> int:
        """Read lines until there are ``limit`` points. Gives the number of bytes consumed.

        ``data`` begins at byte ``offset`` of the file.
        """
        start = 0
        end = data.rfind(b"\n") + 1
        if self._overlong and end:
            start = data.find(b"\n") + 1
            self._overlong = False
        lines = _terminal_lines(data[start:end])
        lines_read = 0
        while lines_read < len(lines):
            lines_read += self._parse_lines(lines[lines_read:], limit)
            if self.count >= limit:
                return start + size_of(lines_read, data[start:end])
        start = max(start, end)
        bar_begin = data.rfind(b"\r", start, len(data) - 1)  # not the last byte: a line break may follow it
        if b"\0" not in data:
            if bar_begin >= 0:
                self._parse_overwritten(_segments(data[start:bar_begin]))
                start = bar_begin + 1
            if self._glance(data[start:]):
                return len(data)
        if len(data) - start < MAX_LINE:
            return start
        if not self._overlong:
            self._overlong = True
            problem = f"a line is longer than {MAX_LINE >> 20} MiB and was skipped"
            self.read_issues.append(ReadIssue(self._path, f"byte {offset + start}", problem))
        return len(data)

    def end(self, torn: bytes) -> None:
        """Read a last line without a line break (``b""`` for none), after which nothing comes."""
        *overwritten, line = _segments(torn)
        self._parse_overwritten([*overwritten, line] if _bar(line) else overwritten)
        if line and not _bar(line):
            self._parse_line(line)
        for writer in self._writers.values():
            writer.end()

    @property
    def proof(self) -> str:
        """The shape of the first two metric lines that are alike; empty before them."""
        return next((writer.shapes.proof for writer in self._writers.values() if writer.shapes.proof), "")

    @property
    def has_rows(self) -> bool:
        """Whether metric lines without a step were read."""
        return any(writer.rows.count for writer in self._writers.values())

    @property
    def _wanted(self) -> Wanted:
        writers = self._writers.values()
        return Wanted(
            table=any(writer.in_table for writer in writers),
            columns=any(writer.columns.names for writer in writers),
            rows=self._wants_rows,
            plan=self._step is None,
        )

    @property
    def _wants_rows(self) -> bool:
        """Whether metrics without a step count: no step was told before them."""
        return self.has_rows or not any(writer.begun for writer in self._writers.values())

    def _last_step(self) -> int | None:
        steps = (writer.last_step for writer in self._writers.values())
        return max((step for step in steps if step is not None), default=None)

    def _parse_lines(self, lines: Sequence[str], limit: int) -> int:
        """Read lines, up to one after which others may count than before. Gives the number of those read."""
        index = 0
        wanted = self._wanted
        counting = may_count(lines, wanted)
        skipped = redrawn(lines, counting)
        for counting_index in (*counting, len(lines)):
            while index < counting_index and any(writer.expects for writer in self._writers.values()):
                if self._read_terminal_line(lines[index]) and self.count >= limit:
                    return index + 1
                index += 1
            self._pass(lines[index:counting_index])
            index = counting_index + 1
            if counting_index in skipped or counting_index == len(lines):
                continue
            if self._read_terminal_line(lines[counting_index]) and (
                self.count >= limit or self._wanted != wanted
            ):
                return index
        return len(lines)

    def _read_terminal_line(self, line: str) -> bool:
        """Read a line of the terminal. True if something on it counts."""
        *overwritten, line = states(line)
        counts = self._parse_overwritten(overwritten)
        counts |= self._parse_line(line)
        if counts:
            self._step = self._last_step()
            if self._step is not None:
                self.lines.row(self._step)
        return counts

    def _pass(self, lines: Sequence[str]) -> None:
        """Pass lines on that tell no metrics."""
        if texts := [line[:MAX_TEXT] for line in lines if line and not line.isspace()]:
            self.lines.add(texts, self._step)

    def _glance(self, torn: bytes) -> bool:
        """Take what a last line without its end tells for sure. True if nothing more is expected of it.

        That is the summary of a training, after which nothing comes, and the count of a bar that is being
        drawn: its next state may never come.
        """
        is_summary = torn.startswith(_TRAINER_SUMMARY) and torn.endswith(b"}")
        if is_summary and parse(*_segments(torn)) is not None:
            self._parse_line(*_segments(torn))
            return True
        text, *_ = _segments(torn.removesuffix(b"\r")) if b"%|" in torn[:_MAX_BAR] else [""]
        if (bar := _bar(text)) is not None:
            self._progress(bar)
        return False

    def _parse_overwritten(self, segments: Iterable[str]) -> bool:
        """Add what was overwritten. Of a bar whose states are no points each, the last one stands for all.

        A record is only overwritten if its line break still lies in a buffer. True if something counts.
        """
        last = None
        counts = False
        for text in segments:
            if text.startswith("{"):
                counts |= self._parse_line(text)
            if (bar := _bar(text)) is None:
                continue
            if last and (last["title"] != bar["title"] or not int(bar["count"]) or is_kept(bar)):
                counts |= self._parse_bar(last, ended=False)
            last = bar
            counts |= self._progress(bar)
        return (last is not None and self._parse_bar(last, ended=False)) or counts

    def _parse_line(self, line: str) -> bool:
        """Read a line. True if it holds metrics or a part of a table, so that others may count after it."""
        name, text = _split_writer(line)
        prefix = line[: len(line) - len(text)]
        counts = False
        if (bar := _bar(text)) is not None:
            counts = self._progress(bar)
            after = text[bar.end() :].lstrip("] ")
            if after and parse(after) is not None:  # a line that was printed while the bar stood there
                text = after
            elif self._parse_bar(bar, ended=True):
                return True
            elif not after and not _shows_more(bar):
                return counts
            else:
                text = f"{bar['title']} {bar['rest']}{text[bar.end() :]}"
        writer = self._writer(name)
        is_metric = writer is not None and writer.parse(text, self._wants_rows)
        if writer is not None and (is_metric or writer.rows.waits):
            self._keep_writer(name, writer)
        if not is_metric and text and not text.isspace():
            self.lines.add([f"{prefix}{text}"[:MAX_TEXT]], self._step)
        if self._step is None:
            self.config |= planned(text)
        return is_metric or counts

    def _progress(self, bar: re.Match[str]) -> bool:
        """Pass on a bar without a title. True if rows had waited for it."""
        writer = None if bar["title"].strip() else self._writer("")
        if writer is None:
            return False
        self._keep_writer("", writer)
        return writer.progress(int(bar["count"]), int(bar["total"]))

    def _parse_bar(self, bar: re.Match[str], ended: bool) -> bool:
        writer = self._writer("") if _shows_more(bar) else None
        if writer is None or not writer.parse_bar(bar, ended):
            return False
        self._keep_writer("", writer)
        return True

    def _writer(self, name: str) -> PrintedMetrics | None:
        return self._writers.get(name) or (self._unused if len(self._writers) < _MAX_WRITERS else None)

    def _keep_writer(self, name: str, writer: PrintedMetrics) -> None:
        self._writers[name] = writer
        if writer is self._unused:
            self._unused = PrintedMetrics({})


def _terminal_lines(data: bytes) -> list[str]:
    """Return the whole lines in the data, each with what was shown on it before."""
    # A power cut leaves zeros, and PowerShell appends UTF-16 to a text in UTF-8.
    text = data.replace(b"\0", b"").decode(errors="replace").replace("\r\n", "\n")
    lines = text.split("\n")[:-1]
    return lines if _is_clean(text) else [*map(_clean, lines)]


def _segments(line: bytes) -> list[str]:
    """Return the texts that were shown on one line of the terminal, in order."""
    return states(_clean(line.decode(errors="replace")))


def _clean(text: str) -> str:
    """Return the text without colours and other commands to a terminal."""
    return text if _is_clean(text) else _CONTROL.sub("", text)


def _is_clean(text: str) -> bool:
    return not ("\x1b" in text or "\x08" in text or "\ufeff" in text)


def _bar(text: str) -> re.Match[str] | None:
    return BAR.match(text) if "%|" in text or ("% " in text and "<" in text) else None


def _shows_more(bar: re.Match[str]) -> bool:
    """Return whether a bar shows more than its count."""
    return "=" in bar["rest"] or bool(bar["title"].strip())


def _split_writer(line: str) -> tuple[str, str]:
    """Return the name of the process that printed the line, and the rest.

    A number before metrics is their step, and not a process, if the rest tells no step.
    """
    prefix = _WRITER.match(line)
    if prefix is None or (prefix["number"] and counts_metrics(line)):
        return "", line
    return prefix[0].strip(" :"), line[prefix.end() :]
