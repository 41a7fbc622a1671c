"""Archives in buckets (``s3://``, ``gs://``): listed once by prefix, and fetched part by part.

The keys are those of the usual variables of the environment, or of the machine's role.
"""

import os
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from functools import lru_cache, partial
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

import msgspec

from sentinel.archives.origin import OpenPart
from sentinel.archives.parts import ListedFile, Part
from sentinel.common.errors import SentinelError
from sentinel.common.installation import install
from sentinel.common.lazy_pattern import lazy_pattern
from sentinel.common.paths import exists, is_directory
from sentinel.sources.console.line_forms import LineForm
from sentinel.sources.discovery import common_path, run_name, runs_among
from sentinel.sources.location import Url
from sentinel.sources.readers.retry import NO_ANSWER
from sentinel.sources.remote.directories import remote_runs
from sentinel.sources.remote.mirror import is_wanted
from sentinel.sources.sidecars.config_files import settings_above
from sentinel.sources.walking import is_internal, is_skipped

if TYPE_CHECKING:
    from obstore.store import ObjectStore

SCHEMES = ("s3", "gs")

_MAX_BUCKET_REQUESTS = 16  # of a worker at once
_HYDRA_SETTINGS = ".hydra/config.yaml"  # the only settings that are hidden

_EMPTY_BUCKET = "nothing lies there, or nothing that may be seen"
_DENIED = lazy_pattern(r"\b(401|403) |PermissionDenied|Unauthenticated")  # in a type or a text of the library


class Bucket(msgspec.Struct, frozen=True):
    """What lies below an address. A worker fetches its part, and removes it when it is judged."""

    url: Url

    def listed(self, _read_issues: list[str], /) -> Iterator[ListedFile]:
        """Yield all objects that may be logs; see `sentinel.archives.origin.ArchiveSource.listed`."""
        prefix = "/".join(self.url.parts[1:])
        any_there = False
        with _reasoned_errors(self.url):
            for objects in self._store().list(prefix or None):
                for listing in objects:
                    any_there = True
                    folder, _, name = listing["path"].rpartition("/")
                    below = listing["path"].removeprefix(prefix).lstrip("/")
                    directory = below.removesuffix(_HYDRA_SETTINGS).rpartition("/")[0]
                    if is_wanted(below, listing["size"]) and not _is_left_out(directory):
                        stamp = f"{listing['size']}\0{listing['e_tag'] or listing['last_modified']}"
                        yield ListedFile(self._address(folder), name, stamp)
        if not any_there:
            raise SentinelError(f"{self.url}: {_EMPTY_BUCKET}")

    @contextmanager
    def opened(self, part: Part, forms: Sequence[LineForm] = ()) -> Iterator[OpenPart]:
        """Open the runs of a part; see `sentinel.archives.origin.ArchiveSource.opened`."""
        with TemporaryDirectory(prefix="sentinel-") as scratch:
            copies = _ScratchCopies(self.url, Path(scratch).resolve())
            files = [
                (copies.root / path.removeprefix(self._address("")).lstrip("/"), names)
                for path, names in part.directories.items()
            ]
            self._fetch(copies.root, [directory / name for directory, names in files for name in names])
            walked = [file for file in files if not is_skipped(file[0].name)]
            local_runs, read_issues = runs_among(walked, [], forms)
            local_paths = [run.local for run in local_runs if run.local]
            folders = [path if is_directory(path) else path.parent for path in local_paths]
            settings_files = {path for folder in folders for path in settings_above(folder)}
            self._fetch(copies.root, [path for path in sorted(settings_files) if not exists(path)])
            runs = [(run, run_name(run, common_path([self.url]))) for run in remote_runs(copies, local_runs)]
            yield OpenPart(runs, read_issues)

    def _fetch(self, root: Path, copies: list[Path]) -> None:
        """Copy objects with their times. What is gone since it was listed is left out."""
        with _reasoned_errors(self.url), ThreadPoolExecutor(_MAX_BUCKET_REQUESTS) as threads:
            [*threads.map(partial(_copy, self._store(), root), copies)]

    def _store(self) -> "ObjectStore":
        package = find_spec("obstore")
        if package is None:
            raise SentinelError(f"{self.url}: archives there need obstore beside sentinel: {install('s3')}")
        from obstore.store import from_url

        root = f"{self.url.scheme}://{self.url.parts[0]}"
        return from_url(root, client_options={"allow_http": True})  # for who names such an endpoint

    def _address(self, folder: str) -> str:
        return f"{self.url.scheme}://{self.url.parts[0]}/{folder}".rstrip("/")


class _ScratchCopies(msgspec.Struct, frozen=True):
    """What was fetched from a bucket, under its own keys. Nothing is added to it."""

    url: Url
    root: Path
    behind: bool = False

    def refresh(self) -> None:
        """Do nothing: what was fetched does not change."""

    def address(self, copy: Path) -> Url:
        return Url(self.url.scheme, (self.url.parts[0], *copy.relative_to(self.root).parts))


def _copy(store: "ObjectStore", root: Path, copy: Path) -> None:
    with suppress(FileNotFoundError):
        content = store.get(str(copy.relative_to(root)))
        modified = int(content.meta["last_modified"].timestamp() * 1e9)
        copy.parent.mkdir(parents=True, exist_ok=True)
        with copy.open("wb") as file:
            for piece in content.stream():
                file.write(piece)
        os.utime(copy, ns=(modified, modified))


@lru_cache(1 << 10)
def _is_left_out(directory: str) -> bool:
    """Return whether a walk over the same files would not go there."""
    above, _, name = directory.rpartition("/")
    return bool(name) and (is_skipped(name) or is_internal(directory) or _is_left_out(above))


@contextmanager
def _reasoned_errors(url: Url) -> Iterator[None]:
    """Turn an error of the library, whose text may hold an address with a signature, into a reason."""
    try:
        yield
    except Exception as error:
        if not type(error).__module__.startswith("obstore"):
            raise
        error_text = f"{type(error).__name__}: {error}"
        why = f"{NO_ANSWER} ({type(error).__name__})"
        if _DENIED.search(error_text):
            why = "access is denied; see whether the usual tools of this machine may read it"
        raise SentinelError(f"{url}: {_EMPTY_BUCKET if error_text.startswith('NotFound') else why}") from None
