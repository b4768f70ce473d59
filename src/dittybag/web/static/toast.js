// Toasts: they stay for some seconds, longer while they are in use, and their Undo has a key.
"use strict";

(() => {
  const region = document.getElementById("toast");
  if (!region) return;
  const SECONDS = 12;
  let timer = null;
  const isTyping = (element) => element.closest("input, textarea, select, [contenteditable]") !== null;
  const undoButton = () => region.querySelector("[data-undo]");

  function dismiss() {
    const hadFocus = region.contains(document.activeElement);
    region.replaceChildren();
    if (hadFocus) document.getElementById("content")?.focus();
  }

  // Refusals stay until they are dismissed. While the pointer or the focus is on a toast, or nobody sees the page, it stays too.
  function wait() {
    clearTimeout(timer);
    if (!region.querySelector("[data-toast]:not(.refusal)")) return;
    timer = setTimeout(() => {
      if (document.hidden || region.matches(":hover, :focus-within")) wait();
      else region.replaceChildren();
    }, 1000 * SECONDS);
  }
  for (const kind of ["pointerleave", "focusout"]) region.addEventListener(kind, wait);
  // htmx itself processes new elements only after a delay, in which a key would submit the form as a page.
  new MutationObserver(() => { window.htmx.process(region); wait(); }).observe(region, { childList: true });

  // Screen readers announce what is added to the region, not what was there when the page was loaded.
  const first = [...region.children];
  region.replaceChildren();
  requestAnimationFrame(() => region.append(...first));

  // After an undo by key or button, the focus stays on the button, which has become Redo.
  let hadFocus = false;
  region.addEventListener("htmx:beforeSwap", () => { hadFocus = region.contains(document.activeElement); });
  region.addEventListener("htmx:afterSwap", () => { if (hadFocus) (undoButton() ?? region.querySelector("[data-dismiss]"))?.focus(); });

  region.addEventListener("click", (event) => { if (event.target.closest("[data-dismiss]")) dismiss(); });
  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || document.querySelector("dialog[open], :popover-open")) return;
    if (event.key === "Escape" && region.contains(event.target)) { event.stopImmediatePropagation(); dismiss(); }
    if (event.key !== "u" || isTyping(event.target) || !undoButton()) return;
    event.stopImmediatePropagation();
    undoButton().click();
  });
})();
