"""Words of metrics that scripts write as one: ``trainloss``, ``valacc``, ``avgreward``, ``BCEloss``."""

from functools import lru_cache

from sentinel.common.lazy_pattern import lazy_pattern

_GLUED = lazy_pattern(
    r"(?<![A-Za-z])(train|trn|tr|valid|val|test|eval|dev|avg|mean|[A-Z]{2,})"
    r"(loss(?:es)?|acc(?:uracy)?|ppl|err(?:or)?|rewards?)(?![A-Za-z])"
)


@lru_cache(maxsize=1 << 14)
def apart(tag: str) -> str:
    """Return a tag in which such words stand apart."""
    return _GLUED.sub(r"\1 \2", tag)
