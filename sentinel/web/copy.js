"use strict";
// Copies the run as Markdown. Without this script, or where the browser forbids it, the link shows the text.
(() => {
  const link = document.getElementById("copy"), said = document.getElementById("copied");
  if (!navigator.clipboard) return;
  link.addEventListener("click", async (event) => {
    event.preventDefault();
    try {
      const answer = await fetch(link.href);
      if (!answer.ok) throw new Error(answer.statusText);
      await navigator.clipboard.writeText(await answer.text());
      said.textContent = " Copied.";
    } catch { location.assign(link.href); }
  });
})();
