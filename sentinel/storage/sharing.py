"""Shares a state with a group, whose members may read it and change nothing."""

import grp
import os
import stat
from collections.abc import Iterator
from pathlib import Path

from sentinel.common.errors import StateError
from sentinel.common.paths import is_file

_DIRECTORY_MODE = 0o2750  # what is made in it later belongs to the group, too
_FILE_MODE = 0o640  # SQLite gives the files beside the database its mode


def share(directory: Path, group: str) -> None:
    """Let the members of a group read what lies in a state directory, now and later.

    Raises StateError if there is no such group, or if the user does not belong to it.
    """
    number = _group_id(group)
    try:
        os.chown(directory, -1, number)
        directory.chmod(_DIRECTORY_MODE)
        for file in directory.iterdir():
            if is_file(file) and not file.is_symlink():
                os.chown(file, -1, number)
                file.chmod(_FILE_MODE)
    except OSError as error:
        raise StateError(
            f"{directory}: cannot be shared with the group {group}: {error.strerror}; the user of the watch "
            "must own it and belong to the group"
        ) from None


def obstacles(directory: Path, group: str) -> Iterator[str]:
    """Yield what keeps the members of a group from reading a state that is shared with them."""
    try:
        number = _group_id(group)
    except StateError as error:
        yield str(error)
        return
    for above in reversed(directory.absolute().parents):
        try:
            status = above.stat()
        except OSError:
            return
        mode = stat.S_IMODE(status.st_mode)
        is_open = mode & stat.S_IXOTH or (status.st_gid == number and mode & stat.S_IXGRP)
        if not is_open:
            yield (
                f"the group {group} cannot enter {above} (mode {mode:04o}), unless an ACL lets it; let "
                "`state_dir` lie elsewhere, such as below /srv"
            )


def _group_id(group: str) -> int:
    try:
        return int(group) if group.isdecimal() else grp.getgrnam(group).gr_gid
    except KeyError:
        raise StateError(f"there is no group {group} on this machine (`state_group`)") from None
