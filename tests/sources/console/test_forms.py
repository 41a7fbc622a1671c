"""The forms of lines that programs print, and what a person reads in them (forms.txt).

A form is one line after ``>``, below the lines that it needs before it. The line after ``=`` says its step,
its epoch, its metrics, and whether their names are of the training, of an evaluation or of both.
A dash stands for what the line does not tell. All lines were written for this table, in the form of the
program's print statement. A line after ``@`` names the repository and the files in which that statement was
read; older versions of a program may print otherwise, and its forms have both.
"""

import re
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from sentinel.sources.base import Run
from sentinel.sources.console.log import ConsoleLog
from sentinel.sources.general.text_log import TextLog
from tests.sources.reader import Reader

HELD_OUT = re.compile(r"(?<![a-z])(?:val|valid|validation|test|eval|evaluation)(?![a-z])", re.IGNORECASE)
PARTS = {"training": {False}, "evaluation": {True}, "both": {False, True}}
ALIKE = 6  # lines that prove a log whose lines tell no step


@dataclass
class Form:
    program: str
    lines: list[str] = field(default_factory=list)
    step: int | None = None
    epoch: float | None = None
    values: dict[str, str] = field(default_factory=dict)
    part: str = ""
    printed_by: str = ""


def read(path: Path) -> list[Form]:
    forms = list[Form]()
    program = ""
    printed_by = ""
    lines = list[str]()
    for line in path.read_text(encoding="utf-8").splitlines():
        if line.startswith("# "):
            program = line[2:]
            printed_by = ""
        elif line.startswith("@ "):
            printed_by = line[2:]
        elif line.startswith(">"):
            lines.append(line[1:].removeprefix(" "))
        elif line:
            step, epoch, values, part = line.removeprefix("= ").split("; ")
            pairs = [pair.rsplit(": ", 1) for pair in values.split(", ") if values != "-"]
            forms.append(
                Form(
                    program,
                    lines,
                    None if step == "-" else int(step),
                    None if epoch == "-" else float(epoch),
                    {name: str(float(value)) for name, value in pairs},
                    part,
                    printed_by,
                )
            )
            lines = []
    return forms


BY_RECURRENCE = frozenset({"CycleGAN and pix2pix", "UER-py"})
"""Programs whose lines no shape knows."""

FORMS = read(Path(__file__).with_name("forms.txt"))


@pytest.mark.slow
@pytest.mark.parametrize("program", sorted({form.program for form in FORMS}))
def test_a_program_is_read_as_a_person_reads_it(tmp_path, program):
    for number, form in enumerate(FORMS):
        if form.program == program:
            as_a_person_reads_it(tmp_path / f"{number}.log", form)


def as_a_person_reads_it(path, form):
    path.write_text("".join(f"{line}\n" for line in form.lines) * (ALIKE if form.step is None else 1))
    reader = Reader(path)
    log = TextLog(path) if form.program in BY_RECURRENCE else ConsoleLog(path)
    run = Run(path, "console", log)
    reader.runs = {run.id: run}
    points = [(tag, step, value) for tag, step, value in reader.poll().flush().points]
    for name, value in form.values.items():
        assert [(tag, v) for tag, _, v in points if tag == name][-1:] == [(name, value)], points
        if form.step is not None:
            assert (name, form.step, value) in points
    if form.epoch is not None:
        assert [value for tag, _, value in points if tag == "epoch"][-1:] == [str(form.epoch)]
    held_out = {bool(HELD_OUT.search(name)) for name in form.values}
    assert form.part == "none" or held_out == PARTS[form.part]


def test_the_forms_are_of_many_programs():
    assert len(FORMS) >= 200
    assert len({form.program for form in FORMS}) >= 60


def test_most_programs_name_where_they_print():
    known = {form.program for form in FORMS if form.printed_by}
    assert len(known) >= 80
    assert all(re.match(r"[\w.-]+/[\w.-]+ \S+\.\w+", form.printed_by) for form in FORMS if form.printed_by)
