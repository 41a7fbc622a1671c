"use strict";
// Keys: j and k go on and back, / searches, u goes to all runs, and ? tells them.
(() => {
  const { all, made } = sentinel;
  const KEYS = [["j", "the next run, or the next incident"], ["k", "the one before"], ["Enter", "open the run"],
    ["/", "search"], ["u", "all runs"], ["?", "these keys"], ["Escape", "close this"]];
  const help = made(`<dialog id="keys" aria-labelledby="keys-title"><h2 id="keys-title">Keys</h2><dl>${
    KEYS.map(([key, does]) => `<dt><kbd>${key}</kbd></dt><dd>${does}</dd>`).join("")
  }</dl><form method="dialog"><button>Close</button></form></dialog>`);
  document.body.append(help);

  const visible = (selector) => all(selector).filter((one) => one.offsetParent);
  const step = (by) => {
    const rows = visible("#table td.name > a"), stops = rows.length ? rows : visible(".run .incident");
    const at = stops.indexOf(document.activeElement), next = stops[at < 0 ? (by > 0 ? 0 : stops.length - 1) : at + by];
    if (!next) return;
    if (!rows.length) next.tabIndex = -1;
    next.focus({ preventScroll: true });
    next.scrollIntoView({ block: rows.length ? "center" : "start" });
  };
  const does = {
    j: () => step(1),
    k: () => step(-1),
    "/": () => visible("#filter, .find")[0]?.focus(),
    u: () => visible(".back a")[0]?.click(),
    "?": () => help.showModal(),
  };
  addEventListener("keydown", (event) => {
    const typing = event.target.closest?.("input:not([type=checkbox]), select, textarea");
    if (event.key === "Escape" && typing) typing.blur();
    if (typing || help.open || event.ctrlKey || event.metaKey || event.altKey || !does[event.key]) return;
    event.preventDefault();
    does[event.key]();
  });
})();
