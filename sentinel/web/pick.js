"use strict";
// Runs that a person picks in the table, to lay their curves over each other. They stand in the address.
(() => {
  const { all, address } = sentinel, bar = document.getElementById("picked"), MOST = 8;
  const picks = () => address.get("pick").split(",").filter(Boolean);
  sentinel.picked = () => {
    const chosen = picks(), link = bar.querySelector("a");
    for (const one of all(".pick")) {
      one.checked = chosen.includes(one.value);
      one.disabled = chosen.length >= MOST && !one.checked;
    }
    bar.hidden = !chosen.length;
    link.textContent = chosen.length < 2 ? "Pick another run to compare" : `Compare ${chosen.length} runs`;
    link.href = `/compare?runs=${chosen.join(",")}`;
  };
  addEventListener("change", ({ target }) => {
    if (!target.matches(".pick")) return;
    const others = picks().filter((one) => one !== target.value);
    address.set("pick", [...others, ...(target.checked ? [target.value] : [])].join(","));
    sentinel.picked();
  });
  bar.querySelector("button").addEventListener("click", () => { address.set("pick", ""); sentinel.picked(); });
  sentinel.picked();
})();
