"""What can be seen of a page in a browser."""

import pytest

INK = """canvas => {
    const { data } = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height);
    const colors = new Set();
    for (let i = 0; i < data.length; i += 4) if (data[i + 3]) colors.add(data.slice(i, i + 3).join());
    return colors.size;
}"""
"""How many colours were drawn on a canvas."""


def serious_findings(page):
    """What axe-core finds about contrast, labels, order or keyboard, if it is serious or critical."""
    axe = pytest.importorskip(
        "axe_playwright_python.sync_playwright", reason="`make test-browser` installs it"
    )
    found = axe.Axe().run(page).response["violations"]
    return [(one["id"], one["nodes"][0]["html"]) for one in found if one["impact"] in ("serious", "critical")]
