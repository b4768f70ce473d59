// The pages of prompts: arguments, tags, drafts, keys.
"use strict";

(() => {
  // Keys of this page: <a data-key="e">.
  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || event.key.length !== 1) return;
    if (event.target.closest("input, textarea, select") || document.querySelector("dialog[open]")) return;
    document.querySelector(`[data-key="${CSS.escape(event.key)}"]`)?.click();
  });

  const draftKey = (kind, path) => "dittybag-draft:" + kind + ":" + path;

  // What was saved needs no draft any more.
  const here = new URL(location.href);
  const saved = here.searchParams.get("saved");
  if (saved === "new" || saved === "edit") {
    const path = saved === "new" ? here.pathname.replace(/\/[^/]*$/, "") : here.pathname + "/edit";
    sessionStorage.removeItem(draftKey(saved, path));
    here.searchParams.delete("saved");
    history.replaceState(history.state, "", here);
  }

  const form = document.getElementById("prompt-form");
  if (!form) return;

  // Arguments: rows are added and removed.
  const rows = document.getElementById("arguments");
  const content = document.getElementById("field-content");
  let next = rows.children.length;
  const changed = (element) => element.dispatchEvent(new Event("input", { bubbles: true }));

  function addArgument() {
    const template = document.getElementById("argument-template").innerHTML;
    rows.insertAdjacentHTML("beforeend", template.replaceAll("NUMBER", String(next)));
    next += 1;
    const row = rows.lastElementChild;
    row.querySelector("[data-remove-argument]").hidden = false;
    return row;
  }

  for (const button of document.querySelectorAll("[data-remove-argument], [data-add-argument]")) button.hidden = false;
  document.querySelector("[data-add-argument]").addEventListener("click", () => {
    addArgument().querySelector("input").focus();
  });
  rows.addEventListener("click", (event) => {
    const button = event.target.closest("[data-remove-argument]");
    if (!button) return;
    const row = button.closest("[data-argument]");
    (row.nextElementSibling ?? row.previousElementSibling)?.querySelector("input")?.focus();
    row.remove();
    changed(form);
    content.dispatchEvent(new Event("argument"));
  });
  rows.addEventListener("change", () => content.dispatchEvent(new Event("argument")));

  // Tags in use are put into the field, or taken out of it, by a click.
  const tags = document.getElementById("field-tags");
  const proposals = document.querySelector("[data-tags]");
  const typed = () => tags.value.split(/[,\s]+/).filter(Boolean).map((tag) => tag.toLowerCase());

  function showTags() {
    if (!proposals) return;
    const chosen = typed();
    const last = /[,\s]$/.test(tags.value) ? "" : chosen.at(-1) ?? "";
    for (const button of proposals.querySelectorAll("[data-tag]")) {
      const isChosen = chosen.includes(button.dataset.tag);
      button.setAttribute("aria-pressed", String(isChosen));
      // While a tag is typed, those that begin like it come first.
      button.classList.toggle("matches", !isChosen && last !== "" && button.dataset.tag.startsWith(last));
    }
  }

  if (proposals) {
    proposals.hidden = false;
    proposals.addEventListener("click", (event) => {
      const tag = event.target.closest("[data-tag]")?.dataset.tag;
      if (!tag) return;
      const chosen = typed();
      if (chosen.includes(tag)) {
        tags.value = chosen.filter((one) => one !== tag).join(", ");
      } else {
        // It takes the place of its own beginning, if that was typed.
        const isBegun = chosen.length && !/[,\s]$/.test(tags.value) && tag.startsWith(chosen.at(-1));
        tags.value = [...(isBegun ? chosen.slice(0, -1) : chosen), tag].join(", ");
      }
      changed(tags);
    });
    tags.addEventListener("input", showTags);
    showTags();
  }

  // Drafts: what is typed is kept in this window, should the page be lost before it is saved.
  const key = draftKey(form.dataset.draft, new URL(form.action).pathname);
  const own = new Set(["form_secret", "version"]);
  const values = () => [...new FormData(form)].filter(([name]) => !own.has(name));
  const text = () => JSON.stringify(values());
  const offer = document.getElementById("draft-offer");
  const kept = sessionStorage.getItem(key);
  if (form.dataset.unsaved === undefined && kept !== null && kept !== text()) offer.hidden = false;
  if (form.dataset.unsaved !== undefined) keep();

  function keep() {
    try {
      sessionStorage.setItem(key, text());
    } catch {
      // There is no room for it: then it is not kept.
    }
  }

  function bringBack(pairs) {
    rows.replaceChildren();
    const numbers = new Map();
    for (const [name, value] of pairs) {
      const found = /^argument-(\d+)-(name|description|choices|required)$/.exec(name);
      if (!found) {
        const field = form.elements.namedItem(name);
        if (field) field.value = value;
        continue;
      }
      if (!numbers.has(found[1])) numbers.set(found[1], addArgument());
      const field = numbers.get(found[1]).querySelector(`[name$="-${found[2]}"]`);
      if (found[2] === "required") field.checked = true;
      else field.value = value;
    }
    changed(content);
    showTags();
  }

  form.addEventListener("input", () => {
    offer.hidden = true;
    keep();
  });
  offer.addEventListener("click", (event) => {
    if (event.target.closest("[data-draft-back]")) bringBack(JSON.parse(kept));
    if (event.target.closest("[data-draft-drop]")) sessionStorage.removeItem(key);
    if (event.target.closest("button")) offer.hidden = true;
  });
})();
