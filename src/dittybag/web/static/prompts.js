// Prompt pages: arguments, tags, drafts.
"use strict";

(() => {
  const draftKey = (kind, path) => "dittybag-draft:" + kind + ":" + path;

  // Delete the draft of a form that was saved.
  const here = new URL(location.href);
  const saved = here.searchParams.get("saved");
  if (saved === "new" || saved === "edit") {
    const path = saved === "new" ? here.pathname.replace(/\/[^/]*$/, "") : here.pathname + "/edit";
    sessionStorage.removeItem(draftKey(saved, path));
    here.searchParams.delete("saved");
    history.replaceState(history.state, "", here);
  }

  // The values of the arguments stay in this tab while its other pages are looked at.
  const filled = document.querySelector("form[data-values]");
  if (filled) {
    const key = "dittybag-values:" + location.pathname + ":" + filled.dataset.values;
    const fields = () => [...filled.elements].filter((field) => field.name.startsWith("value-"));
    const kept = new Map(JSON.parse(sessionStorage.getItem(key) ?? "[]"));
    const restored = fields().filter((field) => field.value === "" && kept.get(field.name));
    for (const field of restored) field.value = kept.get(field.name);
    if (restored.length) window.addEventListener("load", () => restored[0].dispatchEvent(new Event("input", { bubbles: true })));
    filled.addEventListener("input", () => {
      try {
        sessionStorage.setItem(key, JSON.stringify(fields().map((field) => [field.name, field.value])));
      } catch {
        // The storage is full: the values are not kept.
      }
    });
  }

  const form = document.getElementById("prompt-form");
  if (!form) return;

  // Arguments: add and remove rows.
  const rows = document.getElementById("arguments");
  const content = document.getElementById("field-content");
  let next = rows.children.length;
  const dispatchInput = (element) => element.dispatchEvent(new Event("input", { bubbles: true }));

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
    dispatchInput(form);
    content.dispatchEvent(new Event("argument"));
  });
  rows.addEventListener("change", () => content.dispatchEvent(new Event("argument")));
  document.querySelector("[data-verbatim]").addEventListener("change", () => content.dispatchEvent(new Event("argument")));

  // A click on an existing tag adds it to the field or removes it.
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
      // Highlight the tags that start with the text being typed.
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
        tags.value = chosen.filter((other) => other !== tag).join(", ");
      } else {
        // Replace the partly typed tag.
        const isPartlyTyped = chosen.length && !/[,\s]$/.test(tags.value) && tag.startsWith(chosen.at(-1));
        tags.value = [...(isPartlyTyped ? chosen.slice(0, -1) : chosen), tag].join(", ");
      }
      dispatchInput(tags);
    });
    tags.addEventListener("input", showTags);
    showTags();
  }

  // Drafts: unsaved input is kept in the session storage of this tab.
  const key = draftKey(form.dataset.draft, new URL(form.action).pathname);
  const excluded = new Set(["form_secret", "version"]);
  const values = () => [...new FormData(form)].filter(([name]) => !excluded.has(name));
  const text = () => JSON.stringify(values());
  const offer = document.getElementById("draft-offer");
  const storedDraft = sessionStorage.getItem(key);
  if (form.dataset.unsaved === undefined && storedDraft !== null && storedDraft !== text()) offer.hidden = false;
  if (form.dataset.unsaved !== undefined) storeDraft();

  function storeDraft() {
    try {
      sessionStorage.setItem(key, text());
    } catch {
      // The storage is full: the draft is not stored.
    }
  }

  function restoreDraft(pairs) {
    rows.replaceChildren();
    const numbers = new Map();
    for (const [name, value] of pairs) {
      const match = /^argument-(\d+)-(name|description|choices|required)$/.exec(name);
      if (!match) {
        const field = form.elements.namedItem(name);
        if (field && field.type === "checkbox") field.checked = true;
        else if (field) field.value = value;
        continue;
      }
      if (!numbers.has(match[1])) numbers.set(match[1], addArgument());
      const field = numbers.get(match[1]).querySelector(`[name$="-${match[2]}"]`);
      if (match[2] === "required") field.checked = true;
      else field.value = value;
    }
    dispatchInput(content);
    showTags();
  }

  form.addEventListener("input", () => {
    offer.hidden = true;
    storeDraft();
  });
  offer.addEventListener("click", (event) => {
    if (event.target.closest("[data-draft-back]")) restoreDraft(JSON.parse(storedDraft));
    if (event.target.closest("[data-draft-drop]")) sessionStorage.removeItem(key);
    if (event.target.closest("button")) offer.hidden = true;
  });
})();
