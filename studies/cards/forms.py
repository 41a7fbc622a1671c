"""The forms that were written down before any fit: which measurements may speak for which claim."""

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import numpy as np
import polars as pl

from sentinel.detectors.stats import Floats

EXACT = 1e-9  # by which a logarithm may be off
FILE = Path(__file__).with_name("forms.toml")

CLAIMS = tomllib.loads(FILE.with_name("claims.toml").read_text("utf-8"))
"""What a fit cannot know of a claim."""


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
    """A claim that can be fitted, on curves of so many points at least that measure what it ``needs`` and
    none of what ``excuses`` them.
    """

    claim: str
    least_points: int
    needs: Mapping[str, float]
    excuses: Mapping[str, float]
    from_start: bool  # of the training, which a resumed log does not show
    roles: tuple[str, ...]
    detectors: frozenset[str]
    candidates: tuple[Candidate, ...]

    def reads(self) -> pl.Expr:
        """Return whether a row of a table is of a curve that it is made on."""
        enough = pl.col("points") >= np.log10(self.least_points) - EXACT
        fresh = pl.col("is_fresh") | (not self.from_start)
        return pl.col("role").is_in(self.roles) & enough & fresh

    def may_page(self) -> pl.Expr:
        """Return whether a row of a table measures what the claim needs, and nothing excuses it."""
        needed = [pl.col(name).fill_nan(None) >= least for name, least in self.needs.items()]
        excused = [pl.col(name).fill_nan(None) >= least for name, least in self.excuses.items()]
        return pl.all_horizontal(
            pl.lit(True),
            *(one.fill_null(False) for one in needed),
            *(~one.fill_null(False) for one in excused),
        )


@cache
def forms() -> Mapping[str, Form]:
    """Return the forms by claim."""
    return {
        claim: Form(
            claim,
            content["least_points"],
            content.get("needs", {}),
            content.get("excuses", {}),
            CLAIMS[claim]["begins"] == "start",
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
