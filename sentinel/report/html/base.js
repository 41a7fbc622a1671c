"use strict";
// What the other scripts share: elements, the address that says how the page is shown, and times.
globalThis.sentinel = (() => {
  const all = (selector, within = document) => [...within.querySelectorAll(selector)];

  // Elements of HTML that our templates made, in which all text of a run is escaped.
  const made = (html) => {
    const template = document.createElement("template");
    template.innerHTML = html;
    return template.content.firstElementChild;
  };

  // How the page is shown stands in the query of its address, so a link shows it in the same way.
  const address = {
    get: (name) => new URLSearchParams(location.search).get(name) ?? "",
    set(name, value) {
      const query = new URLSearchParams(location.search);
      if (value) query.set(name, value); else query.delete(name);
      const text = query.toString();
      try {
        history.replaceState(null, "", `${location.pathname}${text && `?${text}`}${location.hash}`);
      } catch { /* the frame of a notebook has no address of its own */ }
    },
  };

  // Times in the zone of the reader, with the zone on hover. The server writes them in UTC.
  const day = { day: "numeric", month: "short", hour: "2-digit", minute: "2-digit" };
  const near = new Intl.DateTimeFormat("en-GB", day), far = new Intl.DateTimeFormat("en-GB", { ...day, year: "numeric" });
  const whole = new Intl.DateTimeFormat("en-GB", { dateStyle: "full", timeStyle: "long" });
  const zone = Intl.DateTimeFormat().resolvedOptions().timeZone;
  const units = [["d", 86400], ["h", 3600], ["min", 60]];
  const duration = (seconds) => {
    const unit = units.find(([, size]) => seconds >= size);
    return unit ? `${Math.floor(seconds / unit[1])} ${unit[0]}` : `${Math.max(0, Math.floor(seconds))} s`;
  };
  const times = (within = document) => {
    for (const one of all("time", within)) {
      const then = new Date(one.dateTime), ago = (Date.now() - then) / 1000;
      const text = one.matches(".ago") ? `${duration(ago)} ago` : (ago < 180 * 86400 ? near : far).format(then);
      if (one.textContent === text || isNaN(then)) continue;
      one.textContent = text;
      one.title = `${whole.format(then)}, ${zone}`;
    }
  };
  setInterval(times, 20000);
  return { all, made, address, times };
})();
