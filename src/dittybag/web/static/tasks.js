// Task pages: drag and drop, card menus, times that run, keyboard shortcuts, and forms that return to the previous view.
"use strict";

(() => {
  const region = document.getElementById("tasks");

  // The task form links back to the board or list it was opened from.
  if (region) {
    const remember = () => sessionStorage.setItem("dittybag-tasks", location.pathname + location.search);
    remember();
    document.addEventListener("htmx:replacedInHistory", remember);
  } else {
    const back = sessionStorage.getItem("dittybag-tasks");
    for (const element of back ? document.querySelectorAll("[data-back]") : []) {
      if (!element.matches("a")) element.value = back;
      else if (back.split("?")[0] === element.pathname) element.href = back;
    }
  }

  // Copy a picked date into its text field.
  document.addEventListener("change", (event) => {
    const picker = event.target.closest("[data-fill-target]");
    if (!picker) return;
    const field = document.getElementById(picker.dataset.fillTarget);
    field.value = picker.value;
    field.dispatchEvent(new Event("input", { bubbles: true }));
  });

  // Clear the quick-add field after a task was added.
  document.addEventListener("htmx:afterRequest", (event) => {
    const form = event.target.closest?.("[data-quick]");
    if (form !== event.target || event.detail.xhr.status !== 200) return;
    form.reset();
    document.getElementById("quick-add-text").dispatchEvent(new Event("input", { bubbles: true }));
  });

  // Claims lapse without an event: count down, and refresh when the time is over. The holder may have renewed it.
  // Elements have the seconds that were left when the server rendered them, so the clock of this machine does not matter.
  const ends = new WeakMap();
  const units = [[3600, "h"], [60, "min"], [1, "s"]];
  function countDown() {
    let isOver = false;
    for (const element of document.querySelectorAll("[data-seconds]")) {
      if (!ends.has(element)) ends.set(element, performance.now() + 1000 * Number(element.dataset.seconds));
      const seconds = Math.max(Math.ceil((ends.get(element) - performance.now()) / 1000), 0);
      const [span, unit] = units.find(([span]) => seconds >= span) ?? units.at(-1);
      const text = `${Math.floor(seconds / span)} ${unit} left`;
      if (!element.hidden && element.textContent !== text) element.textContent = text;
      if (seconds === 0 && !element.dataset.over) { element.dataset.over = ""; isOver = true; }
    }
    if (isOver) window.htmx.trigger(document.body, "live:task");
  }
  countDown();
  setInterval(countDown, 1000);
  document.addEventListener("htmx:afterSwap", countDown);

  if (!region) return;
  const post = (address, values = {}) => window.htmx.ajax("POST", address, { values, target: "#toast", swap: "innerHTML" });
  const move = (card, by, value) =>
    post(`${region.dataset.tasks}/${card.dataset.task}/move`, { by, value, version: card.dataset.version });

  // When the focused card disappears, focus its neighbour.
  let neighbour = null;
  function rememberNeighbour(card) {
    const next = card.nextElementSibling ?? card.previousElementSibling;
    neighbour = next?.querySelector("[data-item]")?.id ?? null;
  }
  region.addEventListener("htmx:afterSwap", () => {
    if (neighbour === null || document.activeElement !== document.body) return;
    document.getElementById(neighbour)?.focus();
    neighbour = null;
  });
  document.getElementById("task-actions")?.addEventListener("submit", (event) => {
    event.preventDefault();
    const button = event.submitter;
    const card = button.closest("[data-task]");
    button.closest("[popover]")?.hidePopover();
    const isDeletion = button.hasAttribute("data-delete");
    if (isDeletion || button.hasAttribute("data-tick")) rememberNeighbour(card);
    post(button.formAction, button.name ? { [button.name]: button.value } : {});
  });

  // Drag and drop. Live updates wait until the drag has ended, or the menu of a card is closed.
  let dragged = null;
  let isPressed = false;
  let hasPendingUpdate = false;
  region.addEventListener("pointerdown", (event) => { isPressed = event.target.closest("[draggable=true]") !== null; });
  for (const kind of ["pointerup", "pointercancel"]) {
    document.addEventListener(kind, () => { isPressed = false; if (!dragged) catchUp(); });
  }
  region.addEventListener("dragstart", (event) => {
    const card = event.target.closest?.("[data-task]");
    if (!card?.draggable) return;
    dragged = card;
    isPressed = false;
    card.classList.add("dragged");
    event.dataTransfer.effectAllowed = "move";
    event.dataTransfer.setData("text/plain", card.dataset.title);
  });
  const highlight = (column) => {
    for (const other of region.querySelectorAll(".over")) other.classList.toggle("over", other === column);
    column?.classList.add("over");
  };
  region.addEventListener("dragover", (event) => {
    const column = event.target.closest("[data-column]");
    if (!dragged) return;
    highlight(column);
    if (column) { event.preventDefault(); event.dataTransfer.dropEffect = "move"; }
  });
  region.addEventListener("drop", (event) => {
    const column = event.target.closest("[data-column]");
    if (!dragged || !column) return;
    event.preventDefault();
    if (column.contains(dragged)) return;
    move(dragged, region.dataset.by, column.dataset.column);
  });
  function catchUp() {
    if (hasPendingUpdate) window.htmx.trigger(document.body, "live:task");
    hasPendingUpdate = false;
  }
  region.addEventListener("dragend", () => {
    dragged?.classList.remove("dragged");
    dragged = null;
    highlight(null);
    catchUp();
  });
  region.addEventListener("htmx:beforeSwap", (event) => {
    const isBusy = dragged || isPressed || region.querySelector(":popover-open");
    if (isBusy && event.detail.target === region) { event.detail.shouldSwap = false; hasPendingUpdate = true; }
  });

  // The menu of a card does what dragging does. The browser opens it, also without this script.
  region.addEventListener("toggle", (event) => {
    if (!event.target.matches("[popover]")) return;
    if (event.newState === "open") event.target.querySelector("button:enabled").focus();
    else catchUp();
  }, true);

  // Keys that are not about one button; see commands.js.
  function focusColumn(card, by) {
    const columns = [...region.querySelectorAll(".column")].filter((column) => column.querySelector("[data-item]"));
    const at = columns.indexOf(card.closest(".column"));
    columns[at + by]?.querySelector("[data-item]").focus();
  }
  const currentTask = () => document.activeElement.closest("[data-task]");
  const isWritable = (card) => card?.querySelector("[popover]");
  window.dittybag.add([
    {
      title: "Next and previous column", key: ["ArrowRight", "ArrowLeft"], shownKeys: ["ArrowLeft", "ArrowRight"],
      when: () => region.querySelector(".column") !== null,
      run: (event) => { const card = currentTask(); if (card) focusColumn(card, event.key === "ArrowRight" ? 1 : -1); },
    },
    {
      title: "Set the priority", key: ["1", "2", "3", "4", "5"], shownKeys: ["1", "5"],
      when: () => region.querySelector("[data-task]") !== null,
      run: (event) => {
        const ofSelection = document.querySelector(`[data-selecting] #selection button[value="priority-${event.key}"]`);
        if (ofSelection) ofSelection.click();
        else if (isWritable(currentTask())) move(currentTask(), "priority", event.key);
      },
    },
  ]);
})();
