"""Gives MkDocs the pages that `pages.py` makes, in place of what lies in `docs/`."""

import sys
from pathlib import Path
from typing import Any

sys.path[:0] = [str(Path(__file__).parents[2]), str(Path(__file__).parent)]

from mkdocs.structure.files import File
from pages import pages


def on_files(files: Any, config: Any) -> Any:
    """Add every page; one that was written by hand is replaced by itself with its inclusions."""
    for path, text in pages().items():
        if (written := files.get_file_from_path(path)) is not None:
            files.remove(written)
        files.append(File.generated(config, path, content=text))
    return files
