"use strict";
// A table of runs that sorts, filters and folds. The document holds a slice of its rows.
(() => {
  const { all, made, address, times } = sentinel, table = document.getElementById("table");
  if (!table) return;
  const narrow = matchMedia("(max-width: 40rem)").matches;
  const body = table.tBodies[0], slice = narrow ? Math.min(40, table.dataset.slice) : Number(table.dataset.slice);
  const kept = document.getElementById("more-rows"), more = document.getElementById("more"), folded = document.getElementById("folded");
  const filter = document.getElementById("filter"), since = document.getElementById("since");
  let rows = [...body.rows, ...(kept ? made(kept.textContent).rows : [])], most = slice;

  // Runs that go on come first, and those that ended before a period are folded away.
  const sizes = { m: 60, h: 3600, d: 86400, w: 7 * 86400 };
  const period = (text) => (/^\d+[mhdw]$/.test(text) ? parseInt(text) * sizes[text.at(-1)] : Infinity);
  const ended = (row, seconds) => !row.dataset.on && row.dataset.last && Date.now() / 1000 - row.dataset.last > seconds;
  const plural = (count, noun) => `${count.toLocaleString("en")} ${noun}${count === 1 ? "" : "s"}`;

  // Rows that stay where they are are left alone, because the browser lays out anew whatever is put in.
  const place = (listed) => {
    const wanted = new Set(listed);
    for (const row of [...body.rows]) if (!wanted.has(row)) row.remove();
    let next = body.rows[0] ?? null;
    for (const row of listed) {
      if (row === next) next = next.nextElementSibling;
      else body.insertBefore(row, next);
    }
  };

  const list = () => {
    const wanted = filter.value.toLowerCase(), seconds = since ? period(since.value) : Infinity;
    all(".kind").forEach((one) => one.setAttribute("aria-pressed", one.value === wanted));
    const found = wanted ? rows.filter((row) => row.textContent.toLowerCase().includes(wanted)) : rows;
    const fitting = found.filter((row) => !ended(row, seconds));
    const listed = fitting.slice(0, most);
    place(listed);
    more.hidden = listed.length === fitting.length;
    more.firstElementChild.textContent = `${listed.length.toLocaleString("en")} of ${plural(fitting.length, "run")} are shown.`;
    if (folded) {
      const away = found.length - fitting.length;
      folded.hidden = !away;
      folded.firstElementChild.textContent = `${plural(away, "run")} that ended earlier ${away === 1 ? "is" : "are"} folded away.`;
    }
    times(body);
    sentinel.picked?.();
  };

  const key = (row, column) => row.cells[column].dataset.value ?? row.cells[column].textContent.trim();
  const compare = (a, b) => (isNaN(a) || isNaN(b) ? String(a).localeCompare(String(b)) : a - b);
  const sort = (head, down) => {
    all("th", table).forEach((other) => other.removeAttribute("aria-sort"));
    head.setAttribute("aria-sort", down ? "descending" : "ascending");
    const keyed = rows.map((row) => [key(row, head.cellIndex), row]);
    rows = keyed.sort(([a], [b]) => compare(a, b) * (down ? -1 : 1)).map(([, row]) => row);
    list();
  };
  const columns = () => {
    const chosen = all("#columns input").filter((one) => one.checked).map((one) => one.value);
    table.dataset.shown = chosen.join(" ");
    return chosen.join(" ");
  };

  addEventListener("click", ({ target }) => {
    const button = target.closest?.("button"), head = button?.closest("#table th");
    if (head) {
      const down = head.getAttribute("aria-sort") !== "descending";
      address.set("sort", `${down ? "-" : ""}${head.dataset.column}`);
      sort(head, down);
    }
    if (button?.closest("#more")) { most += slice; list(); }
    if (button?.closest("#folded")) { since.value = "all"; address.set("since", "all"); list(); }
    if (button?.matches(".kind")) {
      filter.value = filter.value === button.value ? "" : button.value;
      address.set("filter", filter.value);
      list();
    }
  });
  addEventListener("input", ({ target }) => {
    if (target === filter) { address.set("filter", filter.value); list(); }
  });
  addEventListener("change", ({ target }) => {
    if (target === since) { address.set("since", since.value); list(); }
    if (target.closest("#columns")) address.set("columns", columns());
  });

  // What the address says, else what stands in the page.
  filter.value = address.get("filter");
  if (since) {
    const asked = address.get("since");
    if (asked && ![...since.options].some((one) => one.value === asked)) since.add(new Option(`of the last ${asked}`, asked));
    if (asked) since.value = asked;
    else if (rows.every((row) => ended(row, period(since.value)))) since.value = "all"; // else nothing would be shown
  }
  const asked = address.get("columns").split(" ");
  all("#columns input").forEach((one) => { one.checked = asked.includes(one.value); });
  columns();
  const by = address.get("sort"), head = by && all("th", table).find((one) => one.dataset.column === by.replace("-", ""));
  if (head) sort(head, by.startsWith("-")); else list();

  sentinel.table = {
    showAll() { most = rows.length; list(); },
    // Put in newer rows. One that is new and goes on, or that got worse where nobody would see it, comes first.
    renew(newer, gone) {
      const places = new Map(rows.map((row, at) => [row.id, at])), listed = new Set(body.rows), urgent = new Set();
      for (const row of newer.map(made)) {
        const at = places.get(row.id) ?? rows.length, older = rows[at];
        const worse = Number(key(row, 0)) > (older ? Number(key(older, 0)) : 0);
        if (!listed.has(older) && (worse || (!older && row.dataset.on))) urgent.add(row);
        if (older?.contains(document.activeElement)) {
          all("td", older).forEach((cell, at) => { if (at !== 1) cell.replaceWith(row.cells[at].cloneNode(true)); });
          Object.assign(older.dataset, row.dataset);
        } else { rows[at] = row; older?.replaceWith(row); }
      }
      rows = [...urgent, ...rows.filter((row) => !urgent.has(row) && !gone.includes(row.id))];
      list();
    },
  };
})();
