"""What can be seen of a page in a browser."""

import pytest

INK = """canvas => {
    const { data } = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height);
    const colors = new Set();
    for (let i = 0; i < data.length; i += 4) if (data[i + 3]) colors.add(data.slice(i, i + 3).join());
    return colors.size;
}"""
"""How many colours were drawn on a canvas."""

_SHADED = """(canvas, name) => {
    const wanted = sentinel.color(name);
    const color = [1, 3, 5].map(at => parseInt(wanted.slice(at, at + 2), 16));
    const { data } = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height);
    let count = 0;
    for (let i = 0; i < data.length; i += 4) {
        const near = color.every((part, at) => Math.abs(data[i + at] - part) < 4);
        count += near && data[i + 3] > 40 && data[i + 3] < 90;
    }
    return count;
}"""


def shaded(canvas, name):
    """How many pixels of a canvas have a colour of the page and are translucent."""
    return canvas.evaluate(_SHADED, name)


def serious_findings(page):
    """What axe-core finds about contrast, labels, order or keyboard, if it is serious or critical."""
    axe = pytest.importorskip(
        "axe_playwright_python.sync_playwright", reason="`make test-browser` installs it"
    )
    found = axe.Axe().run(page).response["violations"]
    return [(one["id"], one["nodes"][0]["html"]) for one in found if one["impact"] in ("serious", "critical")]
