"use strict";
// One signal of several runs in one plot: over steps, time or the share of the plan.
(() => {
  const { all, address, color, short } = sentinel, by = (id) => document.getElementById(id);
  const signal = by("signal"), over = by("over"), smooth = by("smooth"), log = by("log"), place = by("overlay");
  let runs = [], plot;

  const read = () => { runs = all(".compared").map((one) => JSON.parse(one.textContent)); };
  const words = (name) => name.replaceAll("_", " ");

  // A signal of all runs, whatever each calls its tag; else a tag by its name.
  const tagOf = (run, name) => {
    const tags = name.startsWith("tag:") ? [name.slice(4)] : run.signals[name] ?? [];
    return tags.find((tag) => run.curves[tag]?.some(([steps]) => steps.length));
  };
  const offer = () => {
    const signals = new Set(runs.flatMap((run) => Object.keys(run.signals))), tags = new Set(runs.flatMap((run) => Object.keys(run.curves)));
    const groups = [["Signals", [...signals].filter(Boolean), words], ["Tags", [...tags].map((tag) => `tag:${tag}`), (tag) => tag.slice(4)]];
    signal.replaceChildren(...groups.map(([title, names, says]) => {
      const group = document.createElement("optgroup");
      group.label = title;
      const drawn = names.filter((name) => runs.some((run) => tagOf(run, name)));
      group.append(...drawn.map((name) => new Option(says(name), name)));
      return group;
    }));
    const wanted = [address.get("signal"), "loss", "reward"], options = [...signal.options].map((one) => one.value);
    signal.value = wanted.find((name) => options.includes(name)) ?? options[0] ?? "";
  };

  // An exponential mean that begins at the first value. A weight of 0 leaves the values as they are.
  const smoothed = (values, weight) => {
    let sum = 0, share = 0;
    return values.map((value) => {
      sum = weight * sum + (1 - weight) * value;
      share = weight * share + (1 - weight);
      return sum / share;
    });
  };

  // Where a step of an attempt stands, or null where that is not known.
  const placing = (run, tag) => {
    const first = run.curves[tag][0][2][0];
    return {
      step: (step) => step,
      time: (_, time) => (time == null || first == null ? null : (time - first) / 3600),
      share: (step) => (run.planned ? (100 * step) / run.planned : null),
    }[over.value];
  };
  // Where any step of the last attempt stands, also one that has no point of its own.
  const reaching = (run, tag) => {
    const at = placing(run, tag), [steps, , clock] = run.curves[tag].at(-1);
    return (wanted) => {
      const near = steps.findIndex((step) => step >= wanted);
      return at(wanted, near < 0 ? null : clock[near]);
    };
  };
  const onsets = (run, tag) => run.marks.filter((mark) => mark.tag === tag && mark.onset != null)
    .map((mark) => reaching(run, tag)(mark.onset)).filter((x) => x != null);
  // The band of the siblings of a run as two tables, how high and how low they get; none if it cannot be drawn.
  const bandOf = (number) => {
    const run = runs[number], tag = tagOf(run, signal.value), [steps, low, high] = run.siblings[tag];
    const known = steps.map((step, index) => [reaching(run, tag)(step), low[index], high[index]])
      .filter(([x, least]) => x != null && (!log.checked || least > 0));
    return !known.length ? [] : [2, 1].map((edge) => [known.map(([x]) => x), known.map((of) => of[edge])]);
  };

  const draw = () => {
    plot?.destroy();
    place.textContent = "";
    const lines = [], left = [], banded = runs.findIndex((run) => run.siblings[tagOf(run, signal.value)]);
    const band = banded < 0 ? [] : bandOf(banded), tables = [...band];
    const series = [{}, ...band.map(() => ({ width: 0, spanGaps: true, points: { show: false } }))];
    all("#overlay-legend .says").forEach((one) => { one.textContent = ""; });
    runs.forEach((run, number) => {
      const stroke = color(`series-${number + 1}`), tag = tagOf(run, signal.value);
      const says = all("#overlay-legend .says")[number];
      if (!tag) { says.textContent = "does not log it"; return; }
      const at = placing(run, tag);
      for (const [steps, values, clock] of run.curves[tag]) {
        const even = smoothed(values, Number(smooth.value));
        const known = steps.map((step, index) => [at(step, clock[index]), even[index]]).filter(([x]) => x != null).sort(([a], [b]) => a - b);
        if (!known.length) { left.push(number + 1); continue; }
        tables.push([known.map(([x]) => x), known.map(([, y]) => (log.checked && y <= 0 ? null : y))]);
        series.push({ stroke, width: 1.5, spanGaps: true, points: { show: known.length === 1 } });
      }
      says.textContent = `${tag}, last ${short(run.curves[tag].at(-1)[1].at(-1))}`;
      lines.push(...onsets(run, tag).map((x) => [x, stroke]));
    });
    const plain = over.value === "share" ? "have no plan" : "have no times";
    by("overlay-remark").textContent = [
      lines.length ? "Dashed lines stand where an incident of this signal began." : "",
      band.length ? `Shaded is what healthy siblings of run ${banded + 1} reach.` : "",
      left.length ? `Not drawn, because they ${plain}: ${[...new Set(left)].join(", ")}.` : "",
    ].filter(Boolean).join(" ");
    if (tables.length === band.length) { place.textContent = "Nothing can be drawn so."; return; }
    const axis = { stroke: color("soft"), grid: { stroke: color("line"), width: 1 }, ticks: { stroke: color("line") } };
    const units = { step: (x) => x.toLocaleString("en"), time: (x) => `${short(x)} h`, share: (x) => `${short(x)}%` }[over.value];
    plot = new uPlot({
      width: Math.max(place.clientWidth, 200), height: 380,
      scales: { x: { time: false }, y: { distr: log.checked ? 3 : 1 } },
      axes: [{ ...axis, size: 32, values: (_, xs) => xs.map(units) }, { ...axis, size: 64, values: (_, ys) => ys.map(short) }],
      bands: band.length ? [{ series: [1, 2], fill: color("siblings") }] : [],
      series,
      hooks: { draw: [({ ctx, bbox, scales, valToPos }) => {
        ctx.save();
        ctx.setLineDash([4 * devicePixelRatio, 4 * devicePixelRatio]);
        for (const [x, stroke] of lines) {
          if (x < scales.x.min || x > scales.x.max) continue;
          const across = Math.round(valToPos(x, "x", true));
          ctx.strokeStyle = stroke;
          ctx.beginPath();
          ctx.moveTo(across, bbox.top);
          ctx.lineTo(across, bbox.top + bbox.height);
          ctx.stroke();
        }
        ctx.restore();
      }] },
    }, uPlot.join(tables), place);
    plot.root.setAttribute("role", "img");
    plot.root.setAttribute("aria-label", `${signal.selectedOptions[0]?.textContent} of ${runs.length} runs`);
  };

  const chosen = () => {
    address.set("signal", signal.value);
    address.set("over", over.value === "step" ? "" : over.value);
    address.set("smooth", smooth.value === "0" ? "" : smooth.value);
    address.set("log", log.checked ? "1" : "");
    draw();
  };
  read();
  offer();
  over.value = address.get("over") || "step";
  smooth.value = address.get("smooth") || "0";
  log.checked = address.get("log") === "1";
  draw();
  by("compare").addEventListener("input", chosen);
  by("png").addEventListener("click", () => sentinel.savePng(place.querySelector("canvas"), signal.selectedOptions[0].textContent));
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", draw);
  let waiting;
  addEventListener("resize", () => { clearTimeout(waiting); waiting = setTimeout(draw, 200); });
  // Newer curves and settings of the same runs.
  sentinel.recompare = (newer) => {
    by("compared").replaceWith(newer);
    read();
    draw();
  };
})();
