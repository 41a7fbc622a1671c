"""Whether a run looks ill enough as a whole for a page about its outcome.

A rule or a card looks at one curve, and calls ill what many healthy runs do for a while. The forest looks at
all that goes with it. It is asked at interims, and what it said last counts until the next one.
"""

from collections.abc import Sequence

import msgspec

from sentinel.incidents.verdict_merge import Opinion, Verdict

LOOKS_ILL = 0.95
"""Share of healthy runs that look better than one whose page needs no other reason."""


class Heard(msgspec.Struct, frozen=True):
    """The last opinion on a series, up to a step."""

    attempt: int
    step: int
    opinion: Opinion


class Stored(msgspec.Struct, array_like=True, frozen=True):
    """An opinion that was worked out, for the state of a watch."""

    stream: str
    tag: str
    attempt: int
    step: int
    opinion: float | None


class Consent:
    """The last opinions on the outcomes of a run, by stream and tag; those at its end until it goes on."""

    def __init__(self) -> None:
        self._heard: dict[tuple[str, str], Heard] = {}
        self._at_end: dict[tuple[str, str], Heard] = {}

    def hear(self, verdict: Verdict, opinion: Opinion) -> None:
        """Remember what the forest says of a series."""
        heard = self._at_end if verdict.final else self._heard
        heard[verdict.key.stream, verdict.key.tag] = Heard(verdict.key.attempt, verdict.step, opinion)

    def is_given(self, stream: str, attempt: int, onset: int) -> bool:
        """Return whether one outcome of a stream looks ill in this attempt, or none is known to look well.

        What was said before the step at which the trouble began tells nothing of it.
        """
        looks_well = False
        for (of_stream, _), heard in (self._heard | self._at_end).items():
            is_about = (of_stream, heard.attempt) == (stream, attempt) and heard.step >= onset
            opinion = heard.opinion() if is_about else None
            if opinion is not None and opinion >= LOOKS_ILL:
                return True
            looks_well |= opinion is not None
        return not looks_well

    def forget_end(self) -> None:
        """Forget what was said of a run that was taken for over."""
        self._at_end.clear()

    def dump(self) -> list[list[Stored]]:
        """Return the opinions, which are worked out for that."""
        return [
            [
                Stored(stream, tag, heard.attempt, heard.step, heard.opinion())
                for (stream, tag), heard in of_moment.items()
            ]
            for of_moment in (self._heard, self._at_end)
        ]

    def restore(self, stored: Sequence[Sequence[Stored]]) -> None:
        """Restore what `dump` gave."""
        self._heard, self._at_end = (
            {(one.stream, one.tag): Heard(one.attempt, one.step, _said(one.opinion)) for one in of_moment}
            for of_moment in stored
        )


def _said(opinion: float | None) -> Opinion:
    return lambda: opinion
