// What every page does: search, keys, news from the server, copying, forms.
"use strict";

(() => {
  const secret = document.querySelector('meta[name="form-secret"]')?.content ?? "";

  // Requests of htmx carry the secret that forms carry.
  document.addEventListener("htmx:configRequest", (event) => {
    event.detail.headers["X-Form-Secret"] = secret;
  });

  // Problems that the server puts into words are shown where the answer was to go.
  document.addEventListener("htmx:beforeSwap", (event) => {
    if ([400, 403, 404, 409, 422].includes(event.detail.xhr.status)) {
      event.detail.shouldSwap = true;
      event.detail.isError = false;
    }
  });


  // News: `live:prompt` and so on are events of the body, for the hx-trigger of whatever shows such things.
  const state = document.getElementById("live-state");
  const tell = (name, words) => {
    if (!state) return;
    state.dataset.state = name;
    state.querySelector("[data-live-text]").textContent = words;
  };

  function listen(address) {
    const wantsCalls = document.querySelector("[data-live-calls]") !== null;
    const source = new EventSource(address + (wantsCalls ? "?calls=1" : ""));
    let wasLost = false;
    source.addEventListener("open", () => {
      tell("on", "Live");
      // What was missed meanwhile.
      if (wasLost) announce(["project", "prompt", "resource", "task", "library", "call"]);
      wasLost = false;
    });
    source.addEventListener("error", () => {
      wasLost = true;
      tell("off", "Not connected");
      if (source.readyState === EventSource.CLOSED) setTimeout(() => listen(address), 3000);
    });
    source.addEventListener("news", (event) => announce(event.data.split(" ")));
    window.addEventListener("pagehide", () => source.close(), { once: true });
  }

  // What is being fetched again at this moment may lack what has just happened: it is told once more afterwards.
  const missed = new Set();

  function announce(kinds) {
    if (document.querySelector(".htmx-request")) kinds.forEach((kind) => missed.add(kind));
    for (const kind of kinds) document.body.dispatchEvent(new CustomEvent("live:" + kind));
    document.body.dispatchEvent(new CustomEvent("live:any"));
  }

  document.addEventListener("htmx:afterSettle", () => {
    if (missed.size === 0) return;
    const again = [...missed];
    missed.clear();
    announce(again);
  });

  if (document.body.dataset.live) listen(document.body.dataset.live);

  // Copying: <button data-copy="#id of what to copy">.
  document.addEventListener("click", async (event) => {
    const button = event.target.closest("[data-copy]");
    if (!button) return;
    const from = document.querySelector(button.dataset.copy);
    const text = from.value ?? from.textContent;
    let copied = true;
    try {
      await navigator.clipboard.writeText(text);
    } catch {
      copied = copyTheOldWay(text);
    }
    const label = button.querySelector("[data-label]") ?? button;
    const before = label.dataset.before ?? label.textContent;
    label.dataset.before = before;
    label.textContent = copied ? "Copied" : "Select and copy it by hand";
    setTimeout(() => { label.textContent = before; }, 1500);
  });

  function copyTheOldWay(text) {
    const area = document.createElement("textarea");
    area.value = text;
    area.className = "visually-hidden";
    document.body.append(area);
    area.select();
    const copied = document.execCommand("copy");
    area.remove();
    return copied;
  }

  // Forms that take something away ask first: <form data-confirm="Delete it?">.
  document.addEventListener("submit", (event) => {
    const question = event.target.dataset.confirm;
    if (question && !window.confirm(question)) event.preventDefault();
  });

  // Filters act when they are changed: <form data-auto-submit>.
  document.addEventListener("change", (event) => {
    event.target.closest("form[data-auto-submit]")?.requestSubmit();
  });

  // Dialogs: <button data-dialog="id">.
  document.addEventListener("click", (event) => {
    const button = event.target.closest("[data-dialog]");
    if (button) document.getElementById(button.dataset.dialog)?.showModal();
    // Menus close when something else is clicked.
    for (const menu of document.querySelectorAll("details.menu[open]")) {
      if (!menu.contains(event.target)) menu.open = false;
    }
  });

  // A form with changes is not left by accident: <form data-guard>.
  let unsaved = null;
  document.addEventListener("input", (event) => {
    const form = event.target.closest("form[data-guard]");
    if (form) unsaved = form;
  });
  document.addEventListener("submit", (event) => { if (!event.defaultPrevented) unsaved = null; });
  window.addEventListener("beforeunload", (event) => { if (unsaved) event.preventDefault(); });

  // Keys.
  const places = { h: "", p: "/prompts", l: "/libraries", r: "/resources", t: "/tasks", a: "/activity", c: "/connect" };
  let goes = false;
  const isTyping = (element) => element.closest("input, textarea, select, [contenteditable]") !== null;

  function step(by) {
    const items = [...document.querySelectorAll("[data-list] a[data-item]")];
    if (!items.length) return;
    const at = items.indexOf(document.activeElement);
    items[Math.min(Math.max(at + by, 0), items.length - 1)].focus();
  }

  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey) {
      if (event.key === "Enter" && event.target.closest("form[data-guard]")) event.target.closest("form").requestSubmit();
      return;
    }
    if (event.key === "Escape") {
      for (const menu of document.querySelectorAll("details.menu[open]")) menu.open = false;
      const found = document.getElementById("search-dropdown");
      if (found) found.replaceChildren();
      if (isTyping(event.target)) event.target.blur();
      return;
    }
    if (isTyping(event.target) || document.querySelector("dialog[open]")) return;
    const base = document.body.dataset.live?.replace(/\/live$/, "");
    if (goes && base !== undefined && event.key in places) {
      location.assign(base + places[event.key]);
    } else if (event.key === "g") {
      goes = true;
      setTimeout(() => { goes = false; }, 1500);
      return;
    } else if (event.key === "/") {
      event.preventDefault();
      document.getElementById("find")?.focus();
    } else if (event.key === "?") {
      document.getElementById("keys")?.showModal();
    } else if (event.key === "n") {
      const add = document.querySelector("[data-new]");
      if (add) { event.preventDefault(); add.matches("input, textarea") ? add.focus() : add.click(); }
    } else if (event.key === "j" || event.key === "k") {
      step(event.key === "j" ? 1 : -1);
    }
    goes = false;
  });

  // The search box: arrows go through what was found.
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
