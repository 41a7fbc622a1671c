"use strict";
// Each answer is a command for a person to run, because a file can record nothing.
(() => {
  const buttons = [...document.querySelectorAll(".answer")];
  addEventListener("click", ({ target }) => {
    const chosen = target.closest?.(".answer");
    if (!chosen) return;
    const pressed = chosen.getAttribute("aria-pressed") === "true";
    for (const one of chosen.parentElement.children) one.setAttribute("aria-pressed", String(one === chosen && !pressed));
    const commands = buttons.filter((one) => one.getAttribute("aria-pressed") === "true").map((one) => one.value);
    const place = document.getElementById("commands");
    place.textContent = commands.join("\n");
    place.hidden = !commands.length;
    document.getElementById("unanswered").textContent = commands.length
      ? "Run this where `sentinel calibrate` ran, and calibrate again:" : "None yet: choose above.";
  });
})();
