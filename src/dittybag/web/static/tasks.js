// Task pages: drag and drop, the card menu, keyboard shortcuts, and forms that return to the previous view.
"use strict";

(() => {
  const region = document.getElementById("tasks");
  const notice = document.getElementById("task-notice");

  // Offer undo only once: remove the parameter so that a reload or a bookmark does not offer it again.
  const here = new URL(location.href);
  if (here.searchParams.has("notice")) {
    here.searchParams.delete("notice");
    history.replaceState(history.state, "", here);
  }

  notice?.addEventListener("click", (event) => {
    if (event.target.closest("[data-dismiss]")) notice.replaceChildren();
  });

  // The task form links back to the board or list it was opened from.
  if (region) {
    sessionStorage.setItem("dittybag-tasks", here.pathname + here.search);
  } else {
    const back = sessionStorage.getItem("dittybag-tasks");
    for (const element of back ? document.querySelectorAll("[data-back]") : []) {
      if (!element.matches("a")) element.value = back;
      else if (back.split("?")[0] === element.pathname) element.href = back;
    }
  }

  // Collapse the filters on small screens.
  const fold = document.querySelector("[data-fold]");
  if (fold && matchMedia("(max-width: 48rem)").matches) fold.open = false;

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

  if (!region) return;
  const isWritable = region.hasAttribute("data-writable");

  function post(task, action, values = {}) {
    return window.htmx.ajax("POST", `${region.dataset.tasks}/${task}/${action}`, { values, target: "#task-notice", swap: "innerHTML" });
  }
  const move = (task, by, value) => post(task, "move", { by, value });
  const remove = (card) => {
    if (window.confirm(`Delete ‘${card.dataset.title}’?`)) { rememberNeighbour(card); post(card.dataset.task, "delete"); }
  };

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
    const card = event.submitter.closest("[data-task]");
    rememberNeighbour(card);
    post(card.dataset.task, event.submitter.formAction.split("/").at(-1));
  });

  // Drag and drop. Live updates wait until the drag has ended.
  let dragged = null;
  let hasPendingUpdate = false;
  region.addEventListener("dragstart", (event) => {
    const card = event.target.closest?.("[data-task]");
    if (!card || !isWritable) return;
    dragged = card;
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
    move(dragged.dataset.task, region.dataset.by, column.dataset.column);
  });
  region.addEventListener("dragend", () => {
    dragged?.classList.remove("dragged");
    dragged = null;
    highlight(null);
    if (hasPendingUpdate) window.htmx.trigger(document.body, "live:task");
    hasPendingUpdate = false;
  });
  region.addEventListener("htmx:beforeSwap", (event) => {
    if (dragged && event.detail.target === region) { event.detail.shouldSwap = false; hasPendingUpdate = true; }
  });

  // The card menu does what dragging does, for touch and keyboard.
  const menu = document.getElementById("card-menu");
  let selected = null;
  function openMenu(card) {
    selected = card;
    document.getElementById("card-menu-title").textContent = card.dataset.title;
    const columns = [...region.querySelectorAll("[data-column]")];
    const current = card.closest("[data-column]");
    menu.querySelector("[data-columns]").replaceChildren(...columns.map((column) => {
      const button = document.createElement("button");
      button.type = "button";
      button.className = "button";
      button.textContent = column.dataset.name;
      button.disabled = column === current;
      button.addEventListener("click", () => {
        menu.close();
        move(card.dataset.task, region.dataset.by, column.dataset.column);
      });
      return button;
    }));
    document.getElementById("card-menu-label").hidden = columns.length === 0;
    menu.showModal();
  }
  menu?.querySelector("[data-delete]").addEventListener("click", () => { menu.close(); remove(selected); });
  region.addEventListener("click", (event) => {
    if (event.target.closest("[data-menu]")) openMenu(event.target.closest("[data-task]"));
  });

  // Keyboard shortcuts.
  function focusColumn(card, by) {
    const columns = [...region.querySelectorAll("[data-column]")].filter((column) => column.querySelector("[data-item]"));
    const at = columns.indexOf(card.closest("[data-column]"));
    columns[at + by]?.querySelector("[data-item]").focus();
  }
  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || document.querySelector("dialog[open]")) return;
    if (event.target.closest("input, textarea, select")) return;
    if (event.key === "u" && notice.querySelector("[data-undo]")) { notice.querySelector("[data-undo]").click(); return; }
    const card = event.target.closest("[data-task]");
    if (!card) return;
    if (event.key === "ArrowRight" || event.key === "ArrowLeft") {
      event.preventDefault();
      focusColumn(card, event.key === "ArrowRight" ? 1 : -1);
    } else if (event.key === "e") {
      card.querySelector("[data-item]").click();
    } else if (!isWritable) {
      return;
    } else if (event.key === "x") {
      card.querySelector("[data-tick]").click();
    } else if (event.key >= "1" && event.key <= "5") {
      move(card.dataset.task, "priority", event.key);
    } else if (event.key === "m") {
      event.preventDefault();
      openMenu(card);
    } else if (event.key === "d") {
      remove(card);
    }
  });
})();
