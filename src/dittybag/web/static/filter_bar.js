// The filter bar of a list: the results follow its fields, and the address follows the results.
"use strict";

(() => {
  const form = document.querySelector("form[data-filters]");
  if (!form) return;
  const search = form.querySelector('input[type="search"]');
  let timer;

  const apply = () => { clearTimeout(timer); window.htmx.trigger(form, "filter"); };

  // The text is searched for while it is typed; other fields count when they are left or chosen.
  form.addEventListener("input", (event) => {
    if (event.target !== search) return;
    clearTimeout(timer);
    timer = setTimeout(apply, 150);
  });
  form.addEventListener("change", (event) => {
    const field = event.target;
    if (field === search) return;
    if (field.dataset.adds) add(form.elements[field.dataset.adds], field);
    if (field.hasAttribute("data-reload")) location.assign(address());
    else apply();
  });
  form.addEventListener("submit", (event) => { event.preventDefault(); apply(); });

  // The address has only the filters in use.
  form.addEventListener("htmx:configRequest", (event) => {
    if (event.target !== form) return;
    for (const [name, value] of [...event.detail.formData]) if (value === "") event.detail.formData.delete(name);
  });
  // Live updates ask for what the address says: <section hx-get="…" data-follows-address>.
  document.addEventListener("htmx:configRequest", (event) => {
    if (event.target.hasAttribute("data-follows-address")) event.detail.path = location.pathname + location.search;
  });
  function address() {
    const given = [...new FormData(form)].filter(([, value]) => value !== "");
    return form.action + (given.length ? "?" + new URLSearchParams(given) : "");
  }

  function add(values, field) {
    values.value = [...values.value.split(","), field.value.trim()].filter(Boolean).join(",");
    field.value = "";
  }

  const isFilter = (field) => field.name !== "" && !field.hasAttribute("data-display") && !field.hasAttribute("data-keep");

  // Chips and Clear change the fields, so that both always say the same.
  document.addEventListener("click", (event) => {
    const chip = event.target.closest("[data-remove-filter]");
    const clears = event.target.closest("[data-clear-filters]");
    if (!(chip || clears) || event.ctrlKey || event.metaKey || event.shiftKey) return;
    event.preventDefault();
    if (chip) {
      const field = form.elements[chip.dataset.removeFilter];
      field.value = field.value.split(",").filter((value) => chip.dataset.value && value.toLowerCase() !== chip.dataset.value).join(",");
    } else {
      for (const field of [...form.elements].filter(isFilter)) field.value = "";
    }
    // The chip disappears; with the keyboard, the search field is next.
    if (event.detail === 0) search.focus();
    apply();
  });
})();
