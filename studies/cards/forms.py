"""The forms that were written down before any fit: which measurements may speak for which claim."""

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import numpy as np

from sentinel.detectors.stats import Floats

FILE = Path(__file__).with_name("forms.toml")


@dataclass(frozen=True)
class Candidate:
    """A line that a card may have: its measurement, three marks, and whether it takes points."""

    measurement: str
    marks: tuple[float, ...]
    takes: bool

    def ramps(self, values: Floats) -> Floats:
        """Return how far each value has come between each two marks: values x 2, from 0 to 1; 0 for NaN."""
        marks = np.array(self.marks)
        widths = np.diff(marks)
        with np.errstate(invalid="ignore"):
            ramps = np.clip((values[:, None] - marks[:-1]) / widths, 0, 1)
        return np.nan_to_num(ramps, nan=0.0)


@dataclass(frozen=True)
class Form:
    """A claim that can be fitted."""

    claim: str
    roles: tuple[str, ...]
    detectors: frozenset[str]
    candidates: tuple[Candidate, ...]


@cache
def forms() -> Mapping[str, Form]:
    """Return the forms by claim."""
    return {
        claim: Form(
            claim,
            tuple(content["roles"]),
            frozenset(content["detectors"]),
            tuple(
                Candidate(name, tuple(map(float, marks)), takes == "takes")
                for takes in ("adds", "takes")
                for name, marks in content[takes].items()
            ),
        )
        for claim, content in tomllib.loads(FILE.read_text("utf-8")).items()
    }
