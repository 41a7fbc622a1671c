"use strict";
(() => {
  const all = (selector, within = document) => [...within.querySelectorAll(selector)];
  // Elements of HTML that our templates made, in which all text of a run is escaped.
  const made = (html) => {
    const template = document.createElement("template");
    template.innerHTML = html;
    return template.content.firstElementChild;
  };
  const data = new Map();
  const drawn = new Map();
  const dark = matchMedia("(prefers-color-scheme: dark)");

  const of = (run) => {
    if (!data.has(run)) data.set(run, JSON.parse(document.getElementById(`data-${run}`).textContent));
    return data.get(run);
  };
  const color = (name) => getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim();
  const short = (value) => {
    if (value == null) return "";
    const size = Math.abs(value);
    return size !== 0 && (size < 1e-3 || size >= 1e6) ? value.toExponential(2) : String(+value.toPrecision(5));
  };

  // Lines at the steps at which incidents began, fired and ended, and triangles at those of checkpoints.
  const marking = (marks, checkpoints) => ({
    hooks: {
      draw: [(plot) => {
        const { ctx, bbox } = plot;
        const line = (step, name, dash) => {
          if (step == null || step < plot.scales.x.min || step > plot.scales.x.max) return;
          const x = Math.round(plot.valToPos(step, "x", true));
          ctx.save();
          ctx.strokeStyle = color(name);
          ctx.lineWidth = devicePixelRatio;
          ctx.setLineDash(dash.map((part) => part * devicePixelRatio));
          ctx.beginPath();
          ctx.moveTo(x, bbox.top);
          ctx.lineTo(x, bbox.top + bbox.height);
          ctx.stroke();
          ctx.restore();
        };
        ctx.save();
        ctx.fillStyle = color("soft");
        for (const step of checkpoints) {
          if (step < plot.scales.x.min || step > plot.scales.x.max) continue;
          const x = plot.valToPos(step, "x", true), foot = bbox.top + bbox.height, size = 5 * devicePixelRatio;
          ctx.beginPath();
          ctx.moveTo(x, foot - size);
          ctx.lineTo(x - size, foot);
          ctx.lineTo(x + size, foot);
          ctx.fill();
        }
        ctx.restore();
        for (const mark of marks) {
          line(mark.onset, mark.severity, [4, 4]);
          line(mark.fired, mark.severity, []);
          line(mark.resolved, "clean", [1, 3]);
        }
      }],
    },
  });

  // Draw a curve, over the ``zoom`` of the steps if there is one.
  const draw = (place, zoom) => {
    const run = of(place.dataset.run), tag = place.dataset.tag, attempts = run.curves[tag];
    drawn.get(place)?.destroy();
    drawn.delete(place);
    place.textContent = "";
    if (!attempts || !attempts.some(([steps]) => steps.length)) {
      place.textContent = attempts ? "No finite value was logged." : "Its points are not drawn.";
      return;
    }
    const tall = "tall" in place.dataset;
    const marks = "incident" in place.dataset
      ? [run.marks[place.dataset.incident]] : run.marks.filter((mark) => mark.tag === tag);
    const log = document.querySelector(`.log[data-run="${place.dataset.run}"]`).checked
      && attempts.every(([, values]) => values.every((value) => value > 0));
    const legend = document.createElement("div");
    legend.className = "legend";
    const says = (text) => { legend.textContent = text; };
    const values = attempts.flatMap(([, some]) => some), [low, high] = [Math.min(...values), Math.max(...values)];
    const margin = Math.abs(low) / 10 || 1; // around a curve that is flat
    const range = low === high ? short(low) : `${short(low)} to ${short(high)}, last ${short(values.at(-1))}`;
    const lost = run.lost[tag] != null ? `, not finite from step ${run.lost[tag].toLocaleString("en")}` : "";
    const lines = `; dashed: onset, solid: found, dotted: over${run.checkpoints.length ? "; triangles: checkpoints" : ""}`;
    const still = tall ? `${tag} over the steps${lost}${lines}` : `${range}${lost}`;
    // Steps that the plot has to reach, although no finite value was logged there.
    const reached = marks.flatMap((mark) => [mark.onset, mark.fired, mark.resolved]).concat(run.lost[tag])
      .filter((step) => step != null).sort((a, b) => a - b);
    const axis = { stroke: color("soft"), grid: { stroke: color("line"), width: 1 }, ticks: { stroke: color("line") } };
    const plot = new uPlot({
      width: Math.max(place.clientWidth, 200),
      height: tall ? 220 : 120,
      cursor: { sync: { key: `run-${place.dataset.run}` }, drag: { x: true, y: false } },
      scales: { x: { time: false }, y: { distr: log ? 3 : 1, ...(low === high && !log ? { range: [low - margin, low + margin] } : {}) } },
      axes: [
        { ...axis, size: 32, values: (_, steps) => steps.map((step) => step.toLocaleString("en")) },
        { ...axis, size: 64, space: tall ? 30 : 18, values: (_, values) => values.map(short) },
      ],
      series: [{}, ...[...attempts, []].map((_, number) => ({
        stroke: color("curve"), width: 1.2, spanGaps: true, points: { show: false }, dash: number % 2 ? [6, 2] : [],
      }))],
      plugins: [marking(marks, run.checkpoints)],
      hooks: {
        setCursor: [(at) => {
          const index = at.cursor.idx;
          if (index == null) { says(still); return; }
          const values = at.data.slice(1).map((series) => series[index]).filter((value) => value != null);
          says(`step ${at.data[0][index].toLocaleString("en")}: ${values.map(short).join(", ")}`);
        }],
      },
    }, uPlot.join([...attempts, [reached, reached.map(() => null)]]), place);
    plot.root.setAttribute("role", "img");
    plot.root.setAttribute("aria-label", `${tag} over the steps`);
    place.append(legend);
    says(still);
    if (zoom) plot.setScale("x", zoom);
    drawn.set(place, plot);
  };

  const seen = new IntersectionObserver((entries) => {
    for (const entry of entries) {
      if (!entry.isIntersecting) continue;
      seen.unobserve(entry.target);
      draw(entry.target);
    }
  }, { rootMargin: "400px" });

  const zoomOf = (plot) => {
    const { min, max } = plot.scales.x, steps = plot.data[0];
    return min > steps[0] || max < steps[steps.length - 1] ? { min, max } : null;
  };
  const redraw = (places) => places.filter((place) => drawn.has(place)).forEach((place) => draw(place, zoomOf(drawn.get(place))));

  // A page of many runs keeps each as the text of a <noscript>, and makes elements of it once it is looked at.
  const table = document.getElementById("table");
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
    document.body.classList.toggle("one", chosen !== null);
    const cites = (entry) => !chosen || chosen.querySelector(`a[href="#${CSS.escape(entry.id)}"]`) !== null;
    const entries = all("#catalogue details");
    entries.forEach((entry) => entry.classList.toggle("uncited", !cites(entry)));
    document.getElementById("catalogue")?.classList.toggle("uncited", !entries.some(cites));
    if (chosen) all(".plot", chosen).forEach((place) => drawn.has(place) || seen.observe(place));
    if (target?.matches(".run, #runs")) scrollTo(0, 0);
  };

  // A table that sorts by its buttons and filters by its search field. The document holds a slice of its rows.
  const body = table?.tBodies[0], slice = Number(table?.dataset.slice);
  const kept = document.getElementById("more-rows");
  let rows = table ? [...body.rows, ...(kept ? made(kept.textContent).rows : [])] : [];
  let most = slice;
  const list = () => {
    const wanted = document.getElementById("filter").value.toLowerCase();
    all(".kind").forEach((one) => one.setAttribute("aria-pressed", one.value === wanted));
    const fitting = rows.filter((row) => row.textContent.toLowerCase().includes(wanted)), more = document.getElementById("more");
    const listed = fitting.slice(0, most), before = [...body.rows];
    if (listed.length !== before.length || listed.some((row, at) => row !== before[at])) body.replaceChildren(...listed);
    more.hidden = listed.length === fitting.length;
    more.firstElementChild.textContent = `${listed.length.toLocaleString("en")} of ${fitting.length.toLocaleString("en")} runs are shown.`;
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

  addEventListener("click", ({ target }) => {
    const button = target.closest?.("button"), head = button?.closest("#table th");
    if (head) sort(head, head.getAttribute("aria-sort") !== "descending");
    if (button?.closest("#more")) { most += slice; list(); }
    if (button?.matches(".kind")) {
      const field = document.getElementById("filter");
      field.value = field.value === button.value ? "" : button.value;
      list();
    }
  });
  addEventListener("input", ({ target }) => target.id === "filter" && list());
  addEventListener("change", ({ target }) => {
    if (target.matches(".log")) redraw(all(`.plot[data-run="${target.dataset.run}"]`));
  });
  dark.addEventListener("change", () => redraw([...drawn.keys()]));
  let waiting;
  addEventListener("resize", () => { clearTimeout(waiting); waiting = setTimeout(() => redraw([...drawn.keys()]), 200); });
  addEventListener("hashchange", show);
  // Within a notebook the page's own links would lead to the notebook, whose address is their base.
  addEventListener("click", (event) => {
    const link = event.target.closest?.('a[href^="#"]');
    if (!link || location.protocol !== "about:") return;
    event.preventDefault();
    location.hash = link.getAttribute("href");
  });
  addEventListener("beforeprint", () => {
    if (table) { most = rows.length; list(); }
    [...later.keys()].forEach(unfold);
    all(".plot").forEach((place) => drawn.has(place) || draw(place));
  });
  document.documentElement.classList.add("scripted");
  if (table) list();
  show();

  // What a page that changes needs: replace rows of the table, and replace a run by a newer section of it.
  globalThis.sentinel = {
    renew(newer, gone) {
      const places = new Map(rows.map((row, at) => [row.id, at])), listed = new Set(body.rows), urgent = new Set();
      for (const row of newer.map(made)) {
        const at = places.get(row.id) ?? rows.length, older = rows[at];
        if (Number(key(row, 0)) > (older ? Number(key(older, 0)) : 0) && !listed.has(older)) urgent.add(row); // else nobody would see that it got worse
        if (older?.contains(document.activeElement)) all("td", older).forEach((cell, at) => { if (at !== 1) cell.replaceWith(row.cells[at].cloneNode(true)); });
        else { rows[at] = row; older?.replaceWith(row); }
      }
      rows = [...urgent, ...rows.filter((row) => !urgent.has(row) && !gone.includes(row.id))];
      list();
    },
    replace(older, newer) {
      const summary = (one) => one.querySelector("summary").textContent.split("(")[0];
      const opened = new Map(all("details", older).map((one) => [summary(one), one.open]));
      const boxes = all(".log", older).map((one) => one.checked);
      const name = (place) => `${place.dataset.tag} ${place.dataset.incident}`;
      const zooms = new Map();
      for (const [place, plot] of drawn) {
        if (older.contains(place)) { zooms.set(name(place), zoomOf(plot)); plot.destroy(); drawn.delete(place); }
      }
      older.replaceWith(newer);
      data.clear();
      for (const one of all("details", newer)) one.open = opened.get(summary(one)) ?? one.open;
      all(".log", newer).forEach((one, number) => { one.checked = boxes[number] ?? false; });
      newer.classList.add("shown");
      for (const place of all(".plot", newer)) zooms.has(name(place)) ? draw(place, zooms.get(name(place))) : seen.observe(place);
    },
  };
})();
