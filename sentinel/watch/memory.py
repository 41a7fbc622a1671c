"""Gives memory that is free back to the system."""

import ctypes


def give_back() -> None:
    """Give back the free pages among those in use.

    The C library keeps them, so the memory of a watch would stay as large as it was while most runs were
    under watch. Other libraries than glibc have no such call. It takes some milliseconds.
    """
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
    if trim is not None:
        trim(0)
