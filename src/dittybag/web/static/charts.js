// Charts: the arrow keys move through the columns, each of which shows its tooltip.
"use strict";

document.addEventListener("keydown", (event) => {
  const point = event.target.closest?.("[data-chart] .point");
  if (!point || event.ctrlKey || event.metaKey || event.altKey) return;
  const points = [...point.closest("[data-chart]").querySelectorAll(".point")];
  const last = points.length - 1;
  const at = points.indexOf(point);
  const next = { ArrowLeft: Math.max(at - 1, 0), ArrowRight: Math.min(at + 1, last), Home: 0, End: last }[event.key];
  if (next === undefined) return;
  event.preventDefault();
  point.setAttribute("tabindex", "-1");
  points[next].setAttribute("tabindex", "0");
  points[next].focus();
});
