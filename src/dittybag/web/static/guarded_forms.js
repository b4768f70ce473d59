// Forms with unsaved changes: <form data-guard>. They show that there are some, ask before they are lost, and have keys to save.
"use strict";

(() => {
  const forms = [...document.querySelectorAll("form[data-guard]")];
  if (!forms.length) return;
  // Fields that nobody types into. An empty field is as good as none: a new row for an argument is not a change.
  const excluded = new Set(["form_secret", "version", "back"]);
  const stateOf = (form) => JSON.stringify([...new FormData(form)].filter(([name, value]) => value !== "" && !excluded.has(name)));
  const saved = new Map(forms.map((form) => [form, form.dataset.unsaved === undefined ? stateOf(form) : null]));
  // A form that is submitted is saved; any other form that is submitted does not save the guarded ones, but leaves them on purpose.
  const submitted = new Set();
  const isUnsaved = (form) => !submitted.has(form) && stateOf(form) !== saved.get(form);

  function show(form) {
    const state = form.querySelector("[data-save-state]");
    if (!state) return;
    const text = isUnsaved(form) ? "Unsaved changes" : "";
    if (state.textContent !== text) state.textContent = text;
    form.querySelector("[data-save-bar]").classList.toggle("unsaved", text !== "");
  }

  for (const form of forms) {
    for (const kind of ["input", "change"]) form.addEventListener(kind, () => show(form));
    show(form);
  }
  document.addEventListener("submit", (event) => {
    if (event.defaultPrevented) return;
    if (saved.has(event.target)) submitted.add(event.target);
    else forms.forEach((form) => submitted.add(form));
  });
  window.addEventListener("beforeunload", (event) => { if (forms.some(isUnsaved)) event.preventDefault(); });
  // The browser may show the page again as it was left.
  window.addEventListener("pageshow", () => { submitted.clear(); forms.forEach(show); });
  // htmx would replace the page without asking, so the browser loads it instead.
  document.addEventListener("htmx:beforeRequest", (event) => {
    if (!event.detail.boosted || !forms.some(isUnsaved)) return;
    event.preventDefault();
    location.assign(event.detail.pathInfo.finalRequestPath);
  });

  document.addEventListener("keydown", (event) => {
    if (!(event.ctrlKey || event.metaKey) || event.altKey || event.shiftKey) return;
    const isSave = event.key.toLowerCase() === "s";
    const form = event.target.closest("form[data-guard]") ?? (isSave ? forms[0] : null);
    if (!form || (!isSave && event.key !== "Enter")) return;
    event.preventDefault();
    form.requestSubmit();
  });
})();
