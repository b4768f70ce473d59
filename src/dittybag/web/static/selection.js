// Lists: moving from row to row, selecting several of them, and the bar with what can be done with these.
"use strict";

(() => {
  const { add, currentRow } = window.dittybag;
  const bar = document.getElementById("selection");
  const items = () => [...document.querySelectorAll("[data-list] a[data-item]")];
  const boxes = () => [...document.querySelectorAll("[data-select]")];
  const boxOf = (row) => row?.querySelector("[data-select]") ?? null;
  // The ids of the selected rows, which outlive a refresh of the list.
  const selected = new Set();
  // Where a range begins.
  let anchor = null;

  function show() {
    const all = boxes();
    const present = new Set(all.map((box) => box.value));
    for (const value of selected) if (!present.has(value)) selected.delete(value);
    for (const box of all) {
      box.checked = selected.has(box.value);
      box.closest("li, tr").classList.toggle("selected", box.checked);
    }
    document.body.toggleAttribute("data-selecting", selected.size > 0);
    if (!bar) return;
    const every = bar.querySelector("[data-select-all]");
    every.checked = all.length > 0 && selected.size === all.length;
    every.indeterminate = selected.size > 0 && !every.checked;
    bar.querySelector("[data-selection-count]").textContent = selected.size ? `${selected.size} selected` : "";
    if (!selected.size) for (const menu of bar.querySelectorAll("details[open]")) menu.open = false;
  }

  function set(box, isSelected) {
    if (isSelected) selected.add(box.value);
    else selected.delete(box.value);
  }

  function setRange(to, isSelected) {
    const all = boxes();
    const [first, last] = [all.findIndex((box) => box.value === anchor), all.indexOf(to)].sort((a, b) => a - b);
    for (const box of all.slice(Math.max(first, 0), last + 1)) set(box, isSelected);
  }

  function clear() {
    selected.clear();
    show();
  }

  // Boxes: a click with Shift selects everything since the last one.
  document.addEventListener("click", (event) => {
    const box = event.target.closest?.("[data-select]");
    if (box) {
      if (event.shiftKey && anchor !== null) setRange(box, box.checked);
      else set(box, box.checked);
      anchor = box.value;
      show();
    } else if (event.target.closest?.("[data-select-all]")) {
      const isSelected = event.target.closest("[data-select-all]").checked;
      for (const other of boxes()) set(other, isSelected);
      show();
    } else if (event.target.closest?.("[data-select-none]")) {
      clear();
    }
    // A click with Shift on a row does not open it.
    const item = event.target.closest?.("[data-list] a[data-item]");
    if (item && event.shiftKey && boxOf(item.closest("li, tr"))) {
      event.preventDefault();
      const target = boxOf(item.closest("li, tr"));
      if (anchor === null) set(target, true);
      else setRange(target, true);
      anchor = target.value;
      show();
    }
  });
  document.addEventListener("htmx:afterSwap", show);
  // The server has done what was asked for.
  document.body.addEventListener("selection:clear", () => {
    for (const field of bar?.querySelectorAll("[data-enter]") ?? []) field.value = "";
    clear();
  });

  // Keys.
  function step(by, extends_) {
    const all = items();
    if (!all.length) return;
    const row = currentRow();
    const at = row ? all.indexOf(row.querySelector("a[data-item]")) : -1;
    const next = all[Math.min(Math.max(at + by, 0), all.length - 1)];
    next.focus();
    if (!extends_) return;
    const from = boxOf(row);
    const to = boxOf(next.closest("li, tr"));
    if (!to) return;
    if (!selected.size) anchor = (from ?? to).value;
    if (from) set(from, true);
    set(to, true);
    show();
  }

  function toggle() {
    const box = boxOf(currentRow());
    if (!box) return;
    set(box, !selected.has(box.value));
    anchor = box.value;
    show();
  }

  const hasItems = () => items().length > 0;
  const hasBoxes = () => boxes().length > 0;
  add([
    { title: "Next and previous item", key: ["j", "k"], when: hasItems, run: (event) => step(event.key === "j" ? 1 : -1, false) },
    { title: "Open the item", key: ["Enter"], when: hasItems, run: () => {} },
    { title: "Select the item", key: ["x"], when: hasBoxes, run: toggle },
    { title: "Extend the selection", key: ["Shift+j", "Shift+k"], when: hasBoxes, run: (event) => step(event.key === "J" ? 1 : -1, true) },
  ]);

  if (!bar) return;
  // The server sends an export as a file; everything else as a message with undo.
  bar.addEventListener("submit", (event) => {
    const action = event.submitter?.value;
    if (action === "export") return;
    event.preventDefault();
    const values = { ...Object.fromEntries(new FormData(bar)), id: [...selected], action };
    window.htmx.ajax("POST", bar.getAttribute("action"), { values, target: "#toast", swap: "innerHTML" });
    for (const menu of bar.querySelectorAll("details[open]")) menu.open = false;
  });
  bar.addEventListener("keydown", (event) => {
    const action = event.target.dataset.enter;
    if (event.key === "Enter" && action) {
      event.preventDefault();
      bar.querySelector(`button[value="${action}"]`).click();
    }
  });
  // Names of projects to move to, when they are needed.
  const projects = document.getElementById("selection-projects");
  document.getElementById("selection-project")?.addEventListener("focus", async () => {
    const response = await fetch(`${window.dittybag.base}/palette/targets`);
    if (!response.ok) return;
    const options = (await response.json()).projects.map(({ title }) => Object.assign(document.createElement("option"), { value: title }));
    projects.replaceChildren(...options);
  }, { once: true });
  show();
})();
