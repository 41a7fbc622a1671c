"""The changelog of a release; `make release` does the rest."""

import pytest

from tests.tools.release import CHANGELOG, NotReleasable, fragments, with_fragments

OLD = "## 0.0.9 - 2026-01-01\n\n### Added\n\n- Old.\n"
BEFORE = f"# Changelog\n\n## Unreleased\n\n### Fixed\n\n- One.\n\n{OLD}"


def test_fragments_stand_below_the_version_beside_what_was_written_by_hand():
    after = with_fragments(BEFORE, {"added": ["Three."], "fixed": ["Two."]}, "0.1.0", "2026-02-03")
    assert after == (
        "# Changelog\n\n## Unreleased\n\n## 0.1.0 - 2026-02-03\n\n"
        f"### Added\n\n- Three.\n\n### Fixed\n\n- One.\n- Two.\n\n{OLD}"
    )


def test_a_release_without_changes_is_refused():
    with pytest.raises(NotReleasable, match="nothing has changed"):
        with_fragments("# Changelog\n\n## Unreleased\n\n## 0.0.9 - 2026-01-01\n", {}, "0.1.0", "2026-02-03")


def test_the_changelog_and_its_fragments_can_be_released():
    fragments()
    assert "## 9.9.9 - " in with_fragments(CHANGELOG.read_text(), {"added": ["More."]}, "9.9.9", "2026-02-03")
