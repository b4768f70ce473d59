// Behaviour shared by all pages: search, keyboard shortcuts, live updates, copy buttons, forms.
"use strict";

(() => {
  const secret = document.querySelector('meta[name="form-secret"]')?.content ?? "";

  // htmx requests send the same CSRF secret as forms.
  document.addEventListener("htmx:configRequest", (event) => {
    event.detail.headers["X-Form-Secret"] = secret;
  });

  // A sign-in link signs in without a click, once the page is really shown.
  const submit = () => document.querySelector("form[data-submit]")?.requestSubmit();
  if (document.prerendering) document.addEventListener("prerenderingchange", submit, { once: true });
  else submit();

  // Show error messages from the server in the target element of the request.
  document.addEventListener("htmx:beforeSwap", (event) => {
    if ([400, 403, 404, 409, 422].includes(event.detail.xhr.status)) {
      event.detail.shouldSwap = true;
      event.detail.isError = false;
    }
  });

  // The theme: <form hx-post="/appearance" hx-swap="none">. The cookie is for the next page, this one changes at once.
  document.addEventListener("htmx:afterRequest", (event) => {
    if (event.detail.pathInfo.requestPath !== "/appearance" || event.detail.xhr.status !== 204) return;
    const root = document.documentElement;
    root.dataset.theme = event.detail.requestConfig.parameters.theme;
    for (const button of document.querySelectorAll('button[name="theme"]')) {
      button.setAttribute("aria-pressed", String(button.value === root.dataset.theme));
    }
    document.querySelector('meta[name="color-scheme"]').content = root.dataset.theme === "auto" ? "light dark" : root.dataset.theme;
  });

  // Live updates: events such as `live:prompt` are dispatched on the body; elements use them as hx-trigger.
  const state = document.getElementById("live-state");
  const showState = (name, text) => {
    if (!state) return;
    state.dataset.state = name;
    state.querySelector("[data-live-text]").textContent = text;
  };

  function listen(address) {
    const wantsRequests = document.querySelector("[data-live-requests]") !== null;
    const source = new EventSource(address + (wantsRequests ? "?requests=1" : ""));
    let wasLost = false;
    source.addEventListener("open", () => {
      showState("on", "Live");
      // Refresh everything: changes during the disconnection were missed.
      if (wasLost) notify(["project", "prompt", "resource", "task", "library", "request"]);
      wasLost = false;
    });
    source.addEventListener("error", () => {
      wasLost = true;
      showState("off", "Not connected");
      if (source.readyState === EventSource.CLOSED) setTimeout(() => listen(address), 3000);
    });
    source.addEventListener("changes", (event) => notify(event.data.split(" ")));
    window.addEventListener("pagehide", () => source.close(), { once: true });
  }

  // A request that is under way may not include the latest change, and new elements do not listen yet. So their kinds are
  // notified again when all requests have ended: after each of them, two regions would refresh each other without end.
  const pending = new Set();
  const isBusy = () => document.querySelector(".htmx-request, .htmx-settling, .htmx-added") !== null;

  function notify(kinds) {
    if (isBusy()) kinds.forEach((kind) => pending.add(kind));
    for (const kind of kinds) document.body.dispatchEvent(new CustomEvent("live:" + kind));
    document.body.dispatchEvent(new CustomEvent("live:any"));
  }

  // A menu that is open would lose its row, so its region is refreshed when it closes.
  const openMenu = ".card-menu:popover-open";
  document.addEventListener("htmx:beforeSwap", ({ detail }) => {
    const kind = detail.requestConfig.triggeringEvent?.type.match(/^live:(.+)/)?.[1];
    if (!kind || !detail.target.querySelector(openMenu)) return;
    detail.shouldSwap = false;
    pending.add(kind);
  });
  document.addEventListener("toggle", (event) => { if (event.newState === "closed") setTimeout(notifyAgain, 50); }, true);

  function notifyAgain() {
    if (pending.size === 0 || isBusy() || document.querySelector(openMenu)) return;
    const again = [...pending];
    pending.clear();
    notify(again);
  }

  // A response without content does not settle. New elements listen after 20 ms.
  for (const kind of ["htmx:afterSettle", "htmx:afterRequest"]) document.addEventListener(kind, () => setTimeout(notifyAgain, 50));

  if (document.body.dataset.live) listen(document.body.dataset.live);

  // Copy buttons: <button data-copy="#selector-of-the-source">, data-copy-text="the text" or data-copy-from="a URL with the text".
  document.addEventListener("click", async (event) => {
    const button = event.target.closest("[data-copy], [data-copy-text], [data-copy-from]");
    if (!button) return;
    let copied = true;
    try {
      const text = await textToCopy(button);
      try {
        await navigator.clipboard.writeText(text);
      } catch {
        copied = copyWithExecCommand(text);
      }
    } catch {
      copied = false;
    }
    showCopied(button, copied ? "Copied" : button.dataset.copyFrom ? "Copy failed: open it instead" : "Copy failed: select the text");
  });

  async function textToCopy(button) {
    if (button.dataset.copyText !== undefined) return button.dataset.copyText;
    if (button.dataset.copyFrom !== undefined) {
      const response = await fetch(button.dataset.copyFrom);
      if (!response.ok) throw new Error("refused");
      return response.text();
    }
    const from = document.querySelector(button.dataset.copy);
    return from.value ?? from.textContent;
  }

  // A button with an icon alone shows the result beside it.
  function showCopied(button, result) {
    const label = button.querySelector("[data-label]") ?? (button.querySelector(".icon") ? null : button);
    if (!label) {
      button.dataset.result = result;
      setTimeout(() => { delete button.dataset.result; }, 1500);
      return;
    }
    const before = label.dataset.before ?? label.textContent;
    label.dataset.before = before;
    label.textContent = result;
    setTimeout(() => { label.textContent = before; }, 1500);
  }

  function copyWithExecCommand(text) {
    const area = document.createElement("textarea");
    area.value = text;
    area.className = "visually-hidden";
    document.body.append(area);
    area.select();
    const copied = document.execCommand("copy");
    area.remove();
    return copied;
  }

  // Dialogs: <button data-dialog="id">.
  document.addEventListener("click", (event) => {
    const button = event.target.closest("[data-dialog]");
    if (button) document.getElementById(button.dataset.dialog)?.showModal();
    // Close menus on a click outside.
    for (const menu of document.querySelectorAll("details.menu[open]")) {
      if (!menu.contains(event.target)) menu.open = false;
    }
  });

  // Other keys are commands.
  document.addEventListener("keydown", (event) => {
    if (event.key !== "Escape" || event.ctrlKey || event.metaKey || event.altKey) return;
    for (const menu of document.querySelectorAll("details.menu[open]")) {
      if (menu.contains(document.activeElement)) menu.querySelector("summary").focus();
      menu.open = false;
      event.preventDefault();
    }
    document.getElementById("search-dropdown")?.replaceChildren();
    if (event.target.matches("input, textarea, select") && !event.target.closest("dialog")) event.target.blur();
  });

  // The search box: arrow keys move through the results.
  document.getElementById("find")?.addEventListener("keydown", (event) => {
    const first = document.querySelector("#search-dropdown a");
    if (event.key === "ArrowDown" && first) { event.preventDefault(); first.focus(); }
  });
  document.getElementById("search-dropdown")?.addEventListener("keydown", (event) => {
    const links = [...document.querySelectorAll("#search-dropdown a")];
    const at = links.indexOf(document.activeElement);
    if (event.key === "ArrowDown" && at < links.length - 1) { event.preventDefault(); links[at + 1].focus(); }
    if (event.key === "ArrowUp") {
      event.preventDefault();
      at > 0 ? links[at - 1].focus() : document.getElementById("find").focus();
    }
  });
  document.addEventListener("click", (event) => {
    if (!event.target.closest(".find")) document.getElementById("search-dropdown")?.replaceChildren();
  });
})();
