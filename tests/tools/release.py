"""Cuts the release whose version stands in pyproject.toml; `make release` runs it when all tests have passed.

It puts the fragments in `deploy/changes/` into CHANGELOG.md, builds both distributions into `build/release`,
tries the wheel in a new environment, builds the container image, and commits and tags last. If a step fails,
the work tree is as before. `--rehearse` leaves out the commit and the tag. Nothing leaves the machine.
"""

import re
import shutil
import subprocess
import sys
import tomllib
from datetime import UTC, datetime
from pathlib import Path

ROOT = Path(__file__).parents[2]
CHANGELOG = ROOT / "CHANGELOG.md"
CHANGES = ROOT / "deploy" / "changes"
BUILT = ROOT / "build" / "release"
KINDS = ("added", "changed", "fixed", "removed", "security")
RUN = ROOT / "sample_logs" / "non-finite-metric"


class NotReleasable(SystemExit):
    """Says in one line what stands in the way."""


def with_fragments(changelog: str, fragments: dict[str, list[str]], version: str, day: str) -> str:
    """The changelog with the fragments (by kind) among what is unreleased, all of it below the version."""
    match = re.search(r"^## Unreleased\n(.*?)(?=^## |\Z)", changelog, re.MULTILINE | re.DOTALL)
    if match is None:
        raise NotReleasable("CHANGELOG.md has no section `## Unreleased`")
    sections = dict.fromkeys(KINDS, "")
    for heading, text in re.findall(r"^### (\w+)\n(.*?)(?=^### |\Z)", match[1], re.MULTILINE | re.DOTALL):
        sections[heading.lower()] = text.strip()
    for kind, texts in fragments.items():
        lines = [f"- {text}" for text in texts]
        sections[kind] = "\n".join([*filter(None, [sections[kind]]), *lines])
    told = "\n\n".join(f"### {kind.title()}\n\n{text}" for kind, text in sections.items() if text)
    if not told:
        raise NotReleasable("nothing has changed since the last release")
    head = changelog[: match.start()]
    rest = changelog[match.end() :]
    return f"{head}## Unreleased\n\n## {version} - {day}\n\n{told}\n" + (f"\n{rest}" if rest else "")


def fragments() -> dict[Path, str]:
    """The kind of each fragment."""
    found = {file: file.name.split(".")[-2] for file in sorted(CHANGES.glob("*.*.md"))}
    if wrong := [file.name for file, kind in found.items() if kind not in KINDS]:
        raise NotReleasable(f"{CHANGES}: {wrong[0]}: the kind before `.md` is one of {', '.join(KINDS)}")
    return found


def run(*command: object, **options: object) -> str:
    return subprocess.run(
        [*map(str, command)], cwd=ROOT, check=True, text=True, stdout=subprocess.PIPE, **options
    ).stdout.strip()


def build() -> tuple[Path, Path]:
    """The source distribution, and the wheel that is made of it alone."""
    shutil.rmtree(BUILT, ignore_errors=True)
    run(sys.executable, "-m", "hatchling", "build", "-t", "sdist", "-d", BUILT)
    (source,) = BUILT.glob("*.tar.gz")
    offline = "--no-deps", "--no-index", "--no-build-isolation", "--quiet", "--disable-pip-version-check"
    run(sys.executable, "-m", "pip", "wheel", *offline, "-w", BUILT, source)
    (wheel,) = BUILT.glob("*.whl")
    return source, wheel


def try_out() -> None:
    """Install both distributions in new environments and judge a log with them."""
    run(sys.executable, "-m", "pytest", "-q", "--numprocesses", "0", "tests/test_package.py")


def image(version: str) -> str:
    """Build the container image. Gives its name, or why there is none."""
    for builder in ("podman", "docker"):
        if shutil.which(builder) is None:
            continue
        if subprocess.run([builder, "info"], capture_output=True, check=False).returncode:
            return f"no image: {builder} is installed and does not run"
        name = f"sentinel:{version}"
        run(builder, "build", "--file", "deploy/recipes/Containerfile", "--tag", name, ".")
        return name
    return "no image: neither podman nor docker is installed"


def main(rehearse: bool) -> None:
    version = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"]
    if run("git", "status", "--porcelain"):
        raise NotReleasable("the work tree has changes that are not committed")
    if run("git", "tag", "--list", f"v{version}"):
        raise NotReleasable(f"v{version} is tagged already; raise the version in pyproject.toml")
    kinds = fragments()
    texts = {kind: [f.read_text().strip() for f, own in kinds.items() if own == kind] for kind in KINDS}
    before = CHANGELOG.read_text()
    after = with_fragments(before, texts, version, f"{datetime.now(UTC):%Y-%m-%d}")
    try:
        CHANGELOG.write_text(after)
        distributions = build()
        try_out()
        made = image(version)
    except BaseException:
        CHANGELOG.write_text(before)
        raise
    if rehearse:
        CHANGELOG.write_text(before)
    else:
        run("git", "rm", "--quiet", "--", *kinds) if kinds else None
        run("git", "commit", "--all", "--quiet", "--message", f"Release {version}")
        run("git", "tag", "--annotate", f"v{version}", "--message", f"sentinel {version}")
    print(*(one.relative_to(ROOT) for one in distributions), made, sep="\n")
    print("A rehearsal: nothing is committed or tagged." if rehearse else "Next: git push --follow-tags")


if __name__ == "__main__":
    main(rehearse="--rehearse" in sys.argv)
