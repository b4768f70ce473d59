// The command palette: a combobox over all commands, and over what a search on the server finds.
"use strict";

(() => {
  const { base, all, isThere, keysOf, run, showKey, currentRow } = window.dittybag;
  const dialog = document.getElementById("palette");
  if (!dialog) return;
  const input = dialog.querySelector("input");
  const list = dialog.querySelector("[role=listbox]");
  const status = dialog.querySelector("[role=status]");
  const MAX_COMMANDS = 8;
  const MAX_RECENT = 5;
  const RECENT = "dittybag-recent-commands";

  // A match needs beginnings of words or runs of characters, not only the characters anywhere.
  const MIN_SCORE = 4;

  let commands = [];
  // The command that a task is chosen for.
  let chosen = null;
  let found = [];
  let options = [];
  let active = 0;
  let isAsking = false;
  let request = null;
  let timer = 0;

  // Fuzzy matching: the characters of the query in this order. Words that begin with them, and runs of them, count more.
  function match(query, text) {
    const lower = text.toLowerCase();
    let best = null;
    for (let start = lower.indexOf(query[0]); start >= 0; start = lower.indexOf(query[0], start + 1)) {
      const positions = [];
      let score = 0;
      let from = start;
      for (const character of query) {
        const at = character === " " ? from : lower.indexOf(character, from);
        if (at < 0) { score = -Infinity; break; }
        if (character === " ") continue;
        const isWordStart = at === 0 || !/[\p{L}\p{N}]/u.test(lower[at - 1]);
        score += 1 + (isWordStart ? 8 : 0) + (positions.at(-1) === at - 1 ? 5 : 0);
        positions.push(at);
        from = at + 1;
      }
      if (score < MIN_SCORE * query.replaceAll(" ", "").length) continue;
      // Of equal matches, one at the beginning of a short text.
      score -= start / 10 + text.length / 100;
      if (!best || score > best.score) best = { score, positions };
    }
    return best;
  }

  function readRecent() {
    try { return JSON.parse(localStorage.getItem(RECENT)) ?? []; } catch { return []; }
  }
  const nameOf = (command) => `${command.group}: ${command.title}`;
  function remember(command) {
    const recent = [nameOf(command), ...readRecent().filter((name) => name !== nameOf(command))];
    try { localStorage.setItem(RECENT, JSON.stringify(recent.slice(0, MAX_RECENT))); } catch { /* The storage is full or off. */ }
  }

  // What is shown, in groups.
  function sections(query) {
    if (chosen) return [[chosen.title.replace("…", ""), found]];
    if (!query) {
      const recent = readRecent().map((name) => commands.find((command) => nameOf(command) === name)).filter(Boolean);
      const groups = new Map(recent.length ? [["Recent", recent]] : []);
      for (const command of commands) {
        if (recent.includes(command)) continue;
        if (!groups.has(command.group)) groups.set(command.group, []);
        groups.get(command.group).push(command);
      }
      return [...groups];
    }
    const matches = commands
      .map((command) => ({ command, matched: match(query, command.title) ?? match(query, `${command.group} ${command.title}`) }))
      .filter(({ matched }) => matched)
      .sort((a, b) => b.matched.score - a.matched.score)
      .slice(0, MAX_COMMANDS)
      .map(({ command }) => command);
    return [["Commands", matches], ["Results", found]].filter(([, items]) => items.length);
  }

  function highlighted(text, query) {
    const positions = new Set(query ? match(query, text)?.positions : []);
    const parts = document.createDocumentFragment();
    let run = "";
    let isMarked = false;
    const flush = () => {
      if (!run) return;
      if (isMarked) {
        const mark = document.createElement("mark");
        mark.textContent = run;
        parts.append(mark);
      } else parts.append(run);
      run = "";
    };
    for (let at = 0; at < text.length; at += 1) {
      if (positions.has(at) !== isMarked) { flush(); isMarked = positions.has(at); }
      run += text[at];
    }
    flush();
    return parts;
  }

  function render() {
    const query = input.value.trim().toLowerCase();
    options = [];
    list.replaceChildren(...sections(query).map(([group, items], number) => {
      const box = document.createElement("div");
      box.setAttribute("role", "group");
      const title = document.createElement("div");
      title.className = "palette-group";
      title.id = `palette-group-${number}`;
      title.setAttribute("role", "presentation");
      title.textContent = group;
      box.setAttribute("aria-labelledby", title.id);
      box.append(title, ...items.map((item) => option(item, group, query)));
      return box;
    }));
    const count = options.length;
    status.textContent = count ? "" : isAsking ? "Searching…" : "Nothing matches.";
    input.setAttribute("aria-expanded", String(count > 0));
    activate(Math.min(active, count - 1));
  }

  function option(item, group, query) {
    const element = document.createElement("div");
    element.setAttribute("role", "option");
    element.id = `palette-option-${options.length}`;
    const title = document.createElement("span");
    title.className = "palette-title";
    title.append(highlighted(item.title, item.kind ? "" : query));
    element.append(title);
    const detail = item.detail || item.kind || (group === "Commands" || group === "Recent" ? item.group : "");
    if (detail) {
      const more = document.createElement("span");
      more.className = "palette-detail";
      more.textContent = detail;
      element.append(more);
    }
    const [key] = item.kind ? [] : keysOf(item);
    if (key) element.append(showKey(key));
    options.push({ item, element });
    return element;
  }

  function activate(at) {
    active = Math.max(at, 0);
    options.forEach(({ element }, index) => element.setAttribute("aria-selected", String(index === active)));
    const current = options[active]?.element;
    if (!current) { input.removeAttribute("aria-activedescendant"); return; }
    input.setAttribute("aria-activedescendant", current.id);
    current.scrollIntoView({ block: "nearest" });
  }

  // Ask the server, when typing pauses.
  function ask() {
    clearTimeout(timer);
    request?.abort();
    const query = input.value.trim();
    if (!chosen && !query) { found = []; isAsking = false; return; }
    isAsking = true;
    timer = setTimeout(async () => {
      request = new AbortController();
      const address = chosen ? `${base}/palette/tasks?for=${chosen.pick}&q=` : `${base}/palette?q=`;
      try {
        const response = await fetch(address + encodeURIComponent(query), { signal: request.signal });
        found = response.ok ? await response.json() : [];
      } catch (error) {
        if (error.name === "AbortError") return;
        found = [];
      }
      isAsking = false;
      render();
    }, query ? 120 : 0);
  }

  async function loadTargets() {
    try {
      const response = await fetch(`${base}/palette/targets`);
      if (!response.ok) return;
      const { projects, clients } = await response.json();
      commands.push(
        ...projects.map(({ title, link }) => ({ group: "Switch to project", title, link })),
        ...clients.map(({ title, name }) => ({ group: "Connect", title, post: `${base}/connect/${encodeURIComponent(name)}` })),
      );
      if (dialog.open) render();
    } catch {
      // The other commands work without the server.
    }
  }

  function close() {
    dialog.close();
    // Without an element to return to, the field would keep the focus until the next frame.
    if (document.activeElement === input) input.blur();
  }

  function open() {
    if (dialog.open) { close(); return; }
    const row = currentRow();
    document.querySelector("dialog[open]")?.close();
    commands = all(row).filter((command) => !command.hidden && isThere(command));
    begin(null);
    dialog.showModal();
    loadTargets();
  }

  function begin(command) {
    chosen = command;
    input.value = "";
    input.placeholder = command ? `${command.title.replace(" a task…", "")} which task?` : "Type a command, or search";
    found = [];
    active = 0;
    ask();
    render();
  }

  function choose({ item }) {
    if (chosen) {
      remember(chosen);
      const address = `${base}/tasks/${item.id}/${chosen.action}`;
      close();
      window.htmx.ajax("POST", address, { target: "#toast", swap: "innerHTML" });
      return;
    }
    if (item.pick) { begin(item); return; }
    if (item.kind) { close(); location.assign(item.link); return; }
    remember(item);
    // The focus returns to where it was, before the command runs.
    close();
    run(item);
  }

  document.addEventListener("click", (event) => { if (event.target.closest("[data-palette]")) open(); });
  input.addEventListener("input", () => { active = 0; ask(); render(); });
  input.addEventListener("keydown", (event) => {
    const move = { ArrowDown: 1, ArrowUp: -1, PageDown: 8, PageUp: -8 }[event.key];
    if (event.isComposing) return;
    if (move) {
      event.preventDefault();
      const last = options.length - 1;
      const next = active + move;
      // The arrows go round.
      activate(Math.abs(move) > 1 ? Math.min(Math.max(next, 0), last) : next < 0 ? last : next > last ? 0 : next);
    } else if (event.key === "Enter") {
      event.preventDefault();
      if (options[active]) choose(options[active]);
    } else if (chosen && (event.key === "Escape" || (event.key === "Backspace" && !input.value))) {
      event.preventDefault();
      begin(null);
    } else if (event.key === "Escape") {
      event.preventDefault();
      close();
    }
  });
  // Options are chosen with the pointer without taking the focus from the field.
  list.addEventListener("pointerdown", (event) => event.preventDefault());
  list.addEventListener("pointermove", (event) => {
    const at = options.findIndex(({ element }) => element === event.target.closest("[role=option]"));
    if (at >= 0 && at !== active) activate(at);
  });
  list.addEventListener("click", (event) => {
    const picked = options.find(({ element }) => element === event.target.closest("[role=option]"));
    if (picked) choose(picked);
  });
  dialog.addEventListener("click", (event) => { if (event.target === dialog) close(); });
  dialog.addEventListener("close", () => { clearTimeout(timer); request?.abort(); });
})();
