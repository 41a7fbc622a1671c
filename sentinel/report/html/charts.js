"use strict";
// Curves of runs, each drawn once it is about to be seen, or when nothing else is to do.
(() => {
  const { all } = sentinel;
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

  // From this ratio of its ends on, which are three decades, a curve has a logarithmic scale unless a person chose.
  const LOG_RATIO = 1000;
  const LOG_ENDS = [1e-15, 1e15]; // uPlot never finishes the ticks of a logarithmic axis beyond them

  // As wide as the widest label, so that none is cut.
  const axisWidth = (ctx, texts) => {
    ctx.save();
    ctx.font = `${12 * devicePixelRatio}px system-ui, sans-serif`;
    const widest = Math.max(0, ...texts.map((text) => ctx.measureText(text ?? "").width)) / devicePixelRatio;
    ctx.restore();
    return Math.max(48, Math.ceil(widest) + 20); // with the tick and the gap
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
    const run = of(place.dataset.run), tag = place.dataset.tag;
    const attempts = run.curves[tag]?.map(([steps, values]) => [steps, values]); // a live page has times as well
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
    const siblings = run.siblings[tag]; // steps, how low and how high
    const band = siblings ? [[siblings[0], siblings[2]], [siblings[0], siblings[1]]] : [];
    const legend = document.createElement("div");
    legend.className = "legend";
    const says = (text) => { legend.textContent = text; };
    const values = attempts.flatMap(([, some]) => some), [low, high] = [Math.min(...values), Math.max(...values)];
    const wish = document.querySelector(`.log[data-run="${place.dataset.run}"]`);
    const log = [...attempts, ...band].every(([, values]) => values.every((value) => value >= LOG_ENDS[0] && value <= LOG_ENDS[1]))
      && (wish.checked || (!("chosen" in wish.dataset) && high / low >= LOG_RATIO));
    const margin = Math.abs(low) / 10 || 1; // around a curve that is flat
    const range = low === high ? short(low) : `${short(low)} to ${short(high)}, last ${short(values.at(-1))}`;
    const lost = run.lost[tag] != null ? `, not finite from step ${run.lost[tag].toLocaleString("en")}` : "";
    const lines = `; dashed: onset, solid: found, dotted: over${run.checkpoints.length ? "; triangles: checkpoints" : ""}`;
    const scale = log ? ", logarithmic" : "";
    const still = `${tall ? `${tag} over the steps${scale}${lost}${lines}` : `${range}${scale}${lost}`}${siblings ? "; shaded: siblings" : ""}`;
    // Steps that the plot has to reach, although no finite value was logged there.
    const reached = marks.flatMap((mark) => [mark.onset, mark.fired, mark.resolved]).concat(run.lost[tag])
      .filter((step) => step != null).sort((a, b) => a - b);
    const axis = { stroke: color("soft"), grid: { stroke: color("line"), width: 1 }, ticks: { stroke: color("line") } };
    const plot = new uPlot({
      width: Math.max(place.clientWidth, 200),
      height: tall ? 220 : 120,
      cursor: { sync: { key: `run-${place.dataset.run}` }, drag: { x: true, y: false } },
      scales: { x: { time: false }, y: { distr: log ? 3 : 1, ...(low === high && !log && !siblings ? { range: [low - margin, low + margin] } : {}) } },
      axes: [
        { ...axis, size: 32, values: (_, steps) => steps.map((step) => step.toLocaleString("en")) },
        { ...axis, size: (plot, texts) => axisWidth(plot.ctx, texts ?? []), space: tall ? 30 : 18, values: (_, values) => values.map(short) },
      ],
      bands: siblings ? [{ series: [1, 2], fill: color("siblings") }] : [],
      series: [{}, ...band.map(() => ({ width: 0, spanGaps: true, points: { show: false } })), ...[...attempts, []].map((_, number) => ({
        stroke: color("curve"), width: 1.2, spanGaps: true, points: { show: false }, dash: number % 2 ? [6, 2] : [],
      }))],
      plugins: [marking(marks, run.checkpoints)],
      hooks: {
        setCursor: [(at) => {
          const index = at.cursor.idx;
          if (index == null) { says(still); return; }
          const values = at.data.slice(1 + band.length).map((series) => series[index]).filter((value) => value != null);
          if (values.length) says(`step ${at.data[0][index].toLocaleString("en")}: ${values.map(short).join(", ")}`);
        }],
      },
    }, uPlot.join([...band, ...attempts, [reached, reached.map(() => null)]]), place);
    plot.root.setAttribute("role", "img");
    plot.root.setAttribute("aria-label", `${tag} over the steps`);
    const save = Object.assign(document.createElement("button"), { type: "button", className: "pin", textContent: "PNG", title: `Save ${tag} as PNG` });
    save.addEventListener("click", () => sentinel.savePng(plot.root.querySelector("canvas"), tag));
    place.append(legend, ...(tall ? [save] : []));
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

  // What is not near the screen is drawn when nothing else is to do, so that a capture of the page shows it.
  const MOST_AHEAD = 80, tried = new WeakSet();
  const idle = globalThis.requestIdleCallback ?? ((work) => setTimeout(work, 50));
  let waits = false;
  const ahead = () => {
    if (waits || drawn.size >= MOST_AHEAD) return;
    waits = true;
    idle(() => {
      waits = false;
      const next = all(".run.shown .plot").find((place) => !drawn.has(place) && !tried.has(place) && place.offsetParent);
      if (!next) return;
      tried.add(next);
      draw(next);
      ahead();
    });
  };
  const watch = (within) => {
    all(".plot", within).forEach((place) => drawn.has(place) || seen.observe(place));
    ahead();
  };

  addEventListener("toggle", ahead, true);
  addEventListener("change", ({ target }) => {
    if (!target.matches(".log")) return;
    target.dataset.chosen = ""; // until then each curve decides for itself
    redraw(all(`.plot[data-run="${target.dataset.run}"]`));
  });
  dark.addEventListener("change", () => redraw([...drawn.keys()]));
  let waiting;
  addEventListener("resize", () => { clearTimeout(waiting); waiting = setTimeout(() => redraw([...drawn.keys()]), 200); });
  // A picture of a plot on the ground of the page, because its own canvas is transparent.
  sentinel.savePng = (canvas, name) => {
    if (!canvas) return;
    const whole = Object.assign(document.createElement("canvas"), { width: canvas.width, height: canvas.height });
    const ctx = whole.getContext("2d");
    ctx.fillStyle = color("ground");
    ctx.fillRect(0, 0, whole.width, whole.height);
    ctx.drawImage(canvas, 0, 0);
    Object.assign(document.createElement("a"), { href: whole.toDataURL("image/png"), download: `${name.replaceAll(/[^\w.-]+/g, "-")}.png` }).click();
  };
  sentinel.color = color;
  sentinel.short = short;
  sentinel.charts = {
    watch,
    drawAll: () => all(".plot").forEach((place) => drawn.has(place) || draw(place)),
    // Replace a run by a newer section of it; what was zoomed stays so.
    replace(older, newer) {
      const name = (place) => `${place.dataset.tag} ${place.dataset.incident}`;
      const zooms = new Map();
      for (const [place, plot] of drawn) {
        if (older.contains(place)) { zooms.set(name(place), zoomOf(plot)); plot.destroy(); drawn.delete(place); }
      }
      older.replaceWith(newer);
      data.clear();
      for (const place of all(".plot", newer)) if (zooms.has(name(place))) draw(place, zooms.get(name(place)));
      watch(newer);
    },
  };
})();
