// Lists of changes: what changed is loaded below a line, and days have one heading.
"use strict";

(() => {
  document.addEventListener("click", (event) => {
    const toggle = event.target.closest("[data-more]");
    if (!toggle || event.ctrlKey || event.metaKey || event.shiftKey || event.button !== 0) return;
    event.preventDefault();
    const panel = document.getElementById(toggle.getAttribute("aria-controls"));
    panel.hidden = !panel.hidden;
    toggle.setAttribute("aria-expanded", String(!panel.hidden));
    if (!panel.hidden && !panel.hasChildNodes()) window.htmx.ajax("GET", toggle.dataset.more, { target: panel, swap: "innerHTML" });
  });

  // A link with the role of a button is activated by the space key, too.
  document.addEventListener("keydown", (event) => {
    if (event.key !== " " || !event.target.matches("[data-more]")) return;
    event.preventDefault();
    event.target.click();
  });

  // New changes come with the heading of their day, which may be there already.
  document.addEventListener("htmx:afterSwap", (event) => {
    if (event.target.id !== "feed") return;
    const days = new Set();
    for (const heading of document.querySelectorAll("#feed > .feed-day")) {
      if (days.has(heading.dataset.day)) heading.remove();
      days.add(heading.dataset.day);
    }
  });
})();
