"use strict";
// Which run of the page is shown, and what a page that changes needs.
(() => {
  const { all, made, charts } = sentinel, table = document.getElementById("table");

  // A page of many runs keeps each as the text of a <noscript>, and makes elements of it once it is looked at.
  const later = new Map(all(".later").map((one) => [one.dataset.id, one]));
  const unfold = (id) => { later.get(id)?.replaceWith(made(later.get(id).textContent)); later.delete(id); };

  const show = () => {
    const id = decodeURIComponent(location.hash.slice(1));
    unfold(id);
    const target = id ? document.getElementById(id) : null, runs = all(".run");
    if (target?.matches("details")) { target.open = true; target.scrollIntoView(); }
    const chosen = target?.matches(".run") ? target : table ? null : runs[0];
    if (target && !target.matches(".run, #runs") && table) return;
    for (const run of runs) run.classList.toggle("shown", run === chosen);
    document.body.classList.toggle("one", chosen != null);
    const cites = (entry) => !chosen || chosen.querySelector(`a[href="#${CSS.escape(entry.id)}"]`) !== null;
    const entries = all("#catalogue details");
    entries.forEach((entry) => entry.classList.toggle("uncited", !cites(entry)));
    document.getElementById("catalogue")?.classList.toggle("uncited", !entries.some(cites));
    if (chosen) {
      sentinel.signals(chosen);
      charts.watch(chosen);
    }
    if (target?.matches(".run, #runs")) scrollTo(0, 0);
    sentinel.times();
  };

  addEventListener("hashchange", show);
  // Within a notebook the page's own links would lead to the notebook, whose address is their base.
  addEventListener("click", (event) => {
    const link = event.target.closest?.('a[href^="#"]');
    if (!link || location.protocol !== "about:") return;
    event.preventDefault();
    location.hash = link.getAttribute("href");
  });
  addEventListener("beforeprint", () => {
    sentinel.table?.showAll();
    [...later.keys()].forEach(unfold);
    charts.drawAll();
  });
  document.documentElement.classList.add("scripted");
  if (matchMedia("(max-width: 40rem)").matches) all(".chips").forEach((one) => { one.open = false; });
  show();

  // The element of a newer run that stands where an element of the older one stood, by tag and name.
  const heir = (one, older, newer) => {
    const name = (other) => other.getAttribute("aria-label") ?? (other.querySelector("h4") ?? other).textContent;
    const namesakes = (run) => all(one.tagName, run).filter((other) => name(other) === name(one));
    return namesakes(newer)[namesakes(older).indexOf(one)];
  };

  // Replace a run by a newer section of it. What a person opened, chose or focused stays so.
  sentinel.replace = (older, newer) => {
    const focused = older.contains(document.activeElement) ? document.activeElement : null;
    const focusable = focused && heir(focused, older, newer);
    const summary = (one) => one.querySelector("summary").textContent.split("(")[0];
    const opened = new Map(all("details", older).map((one) => [summary(one), one.open]));
    const boxes = all(".log", older).map((one) => one.checked);
    for (const one of all("details", newer)) one.open = opened.get(summary(one)) ?? one.open;
    all(".log", newer).forEach((one, number) => { one.checked = boxes[number] ?? false; });
    newer.classList.add("shown");
    charts.replace(older, newer);
    sentinel.signals(newer);
    sentinel.times(newer);
    if (focused?.matches(".incident") && focusable) focusable.tabIndex = -1;
    focusable?.focus({ preventScroll: true });
  };
})();
