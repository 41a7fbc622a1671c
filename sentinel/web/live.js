"use strict";
// Keeps the page as the server has it. The page works without this script, but then stays as it was loaded.
(() => {
  const live = document.currentScript.dataset.live, link = document.getElementById("link");
  const told = (verdict, trouble) => {
    document.title = `sentinel: ${verdict}`;
    document.querySelector("h1").textContent = verdict;
    const place = document.getElementById("trouble");
    place.textContent = trouble;
    place.hidden = !trouble;
  };

  const rows = ({ verdict, counted, trouble, rows: changed }) => {
    told(verdict, trouble);
    document.getElementById("counted").textContent = counted;
    const gone = Object.keys(changed).filter((key) => !changed[key]);
    sentinel.table.renew(Object.values(changed).filter(Boolean), gone.map((key) => `row-${key}`));
  };

  let fetching = false, again = false;
  const run = async () => {
    if (fetching) { again = true; return; }
    fetching = true;
    try {
      const answer = await fetch(`${location.pathname}${location.search}`);
      if (!answer.ok) return;
      const newer = new DOMParser().parseFromString(await answer.text(), "text/html");
      const part = (page, selector) => page.querySelector(selector);
      if (sentinel.recompare) { sentinel.recompare(document.adoptNode(part(newer, "#compared"))); return; }
      const older = part(document, ".run");
      if (!older) {
        part(document, "main").replaceWith(document.adoptNode(part(newer, "main")));
        sentinel.times();
        return;
      }
      if (older.contains(document.activeElement) && document.activeElement.matches("button, input:not(.log), select")) return;
      told(part(newer, "h1").textContent, part(newer, "#trouble").textContent);
      sentinel.replace(older, document.adoptNode(part(newer, ".run")));
      const entries = part(newer, "#catalogue-place"), open = document.querySelectorAll("#catalogue-place details[open]");
      for (const one of open) entries.querySelector(`#${CSS.escape(one.id)}`)?.setAttribute("open", "");
      part(document, "#catalogue-place").replaceWith(document.adoptNode(entries));
    } finally {
      fetching = false;
      if (again) { again = false; run(); }
    }
  };

  const events = new EventSource(live);
  events.onmessage = ({ data }) => (document.getElementById("table") ? rows(JSON.parse(data)) : run());
  events.onopen = () => { link.textContent = "live"; link.classList.remove("lost"); };
  events.onerror = () => { link.textContent = "not live: the connection is lost"; link.classList.add("lost"); };
  addEventListener("pagehide", () => events.close());
})();
