// Forms that pin and unpin: <form data-pins>. They are sent without leaving the page, and the answer is a message with undo.
"use strict";

(() => {
  // Before other listeners, so that a guarded form on the page does not take it for leaving.
  document.addEventListener("submit", (event) => {
    const form = event.target.closest("form[data-pins]");
    if (!form) return;
    event.preventDefault();
    event.submitter?.closest("[popover]")?.hidePopover();
    const values = Object.fromEntries(new FormData(form, event.submitter));
    window.htmx.ajax("POST", form.getAttribute("action"), { values, target: "#toast", swap: "innerHTML" });
  }, true);

  // What was typed is pinned now.
  document.addEventListener("htmx:afterRequest", (event) => {
    const { requestConfig, xhr } = event.detail;
    const field = document.getElementById("field-pin");
    if (!field || requestConfig.verb !== "post" || xhr.status !== 200) return;
    if (requestConfig.parameters.pin === field.value) field.value = "";
  });
})();
