"use strict";
// The signals of a run: a search, and pins that keep some at the top. Both stand in the address.
(() => {
  const { all, address } = sentinel;
  const pins = () => address.get("pins").split(" ").filter(Boolean).map(decodeURIComponent);

  // Show what fits the search; groups that hold none of it are hidden, and those that do unfold.
  const search = (run) => {
    const field = run.querySelector(".find"), wanted = field.value.toLowerCase();
    for (const one of all("figure[data-tag]", run)) one.hidden = !one.textContent.toLowerCase().includes(wanted);
    for (const group of all(".group", run)) {
      const fits = group.querySelector("figure:not([hidden])") !== null;
      group.hidden = !fits;
      if (wanted && fits) group.open = true;
    }
    sentinel.charts.watch(run);
  };

  // Move the pinned figures to the top, and the others back to where they were.
  const homes = new WeakMap();
  const pin = (run) => {
    const top = run.querySelector(".pinned"), chosen = pins();
    for (const figure of all("figure[data-tag]", run)) {
      const pinned = chosen.includes(figure.dataset.tag), button = figure.querySelector(".pin");
      button.setAttribute("aria-pressed", pinned);
      button.textContent = pinned ? "unpin" : "pin";
      if (pinned && !homes.has(figure)) {
        const home = document.createComment("");
        figure.replaceWith(home);
        homes.set(figure, home);
        top.append(figure);
      } else if (!pinned && homes.has(figure)) {
        homes.get(figure).replaceWith(figure);
        homes.delete(figure);
      }
    }
    top.hidden = !top.firstElementChild;
  };

  addEventListener("input", ({ target }) => {
    if (!target.matches(".find")) return;
    address.set("find", target.value);
    search(target.closest(".run"));
  });
  addEventListener("click", ({ target }) => {
    if (!target.matches?.(".pin")) return;
    const tag = target.closest("figure").dataset.tag, before = pins();
    const now = before.includes(tag) ? before.filter((one) => one !== tag) : [...before, tag];
    address.set("pins", now.map(encodeURIComponent).join(" "));
    pin(target.closest(".run"));
    target.focus();
  });

  // What the address says about the signals of a run that is shown now.
  sentinel.signals = (run) => {
    const field = run.querySelector(".find");
    if (!field) return; // a page of questions has no list of signals
    field.value = address.get("find");
    if (field.value) search(run);
    pin(run);
  };
})();
