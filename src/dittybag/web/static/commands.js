// The commands of the web UI: one list for the palette, the keyboard and the dialog of shortcuts.
// A page adds commands with attributes: <button data-command="Edit this prompt" data-key="e">. In a row of a list, they are
// about the row that has the focus; in the bar of the selection, about the selected rows.
"use strict";

window.dittybag = (() => {
  const base = document.body.dataset.live?.replace(/\/live$/, "");
  const rights = new Set((document.body.dataset.rights ?? "").split(" "));
  const secret = document.querySelector('meta[name="form-secret"]')?.content ?? "";

  // `path`: a page of this project; `click`: an element of the page; `post`: a form to send; `pick`: the tasks to choose from.
  // `needs`: the right to change the project, or one's own tasks.
  const go = (title, key, path) => ({ group: "Go to", title, key: `g ${key}`, path });
  const look = (title, fields) => ({ group: "Appearance", title, post: "/appearance", fields, stays: true });
  const global = [
    { group: "General", title: "Open the command palette", key: "Mod+k", click: "[data-palette]", hidden: true },
    { group: "General", title: "Search everything", key: "/", click: "#find" },
    { group: "General", title: "Undo the last action", key: "u", click: "[data-undo]" },
    { group: "General", title: "Show the keyboard shortcuts", key: "?", run: () => openHelp() },
    go("Home", "h", ""),
    go("Prompts", "p", "/prompts"),
    go("Libraries", "l", "/prompts?tab=libraries"),
    go("Resources", "r", "/resources"),
    go("Tasks", "t", "/tasks"),
    go("Context", "x", "/context"),
    go("Activity", "a", "/activity"),
    go("Connect", "c", "/connect"),
    go("Settings: projects", ",", "/settings"),
    { group: "Go to", title: "Settings: users and tokens", path: "/settings/access" },
    { group: "Go to", title: "Settings: import, export, backup and checks (doctor)", path: "/settings/data" },
    go("Task list", "i", "/tasks?view=list"),
    go("Task graph", "d", "/tasks/graph"),
    { group: "Create", title: "Create a new item", key: "c", click: "[data-new]", hidden: true },
    { group: "Create", title: "New prompt", path: "/prompts/new", needs: "write" },
    { group: "Create", title: "New resource", path: "/resources/new", needs: "write" },
    { group: "Create", title: "New task", path: "/tasks#quick-add-text", needs: "own" },
    { group: "Create", title: "Pin an item to the project", path: "/context#field-pin", needs: "write" },
    { group: "Tasks", title: "Complete a task…", pick: "complete", action: "done", needs: "own" },
    { group: "Tasks", title: "Claim a task…", pick: "claim", action: "claim", needs: "own" },
    { group: "Tasks", title: "Release a task…", pick: "release", action: "take-away", needs: "own" },
    look("Theme: light", { theme: "light" }),
    look("Theme: dark", { theme: "dark" }),
    look("Theme: like the system", { theme: "auto" }),
    { group: "Account", title: "Sign out", post: "/sign-out" },
  ];
  // Commands of scripts, which are about the list of the page.
  const listed = [];

  const ROW = "[data-list] :is(li, tr)";
  const rowOf = (element) => element?.closest?.(ROW) ?? null;
  const labelOf = (row) => row?.querySelector("[data-item]")?.textContent.trim() ?? "";
  const currentRow = () => rowOf(document.activeElement);
  const isHidden = (element) => element.disabled || element.closest("[hidden]") !== null;

  // The commands of elements on the page, in the order in which a key finds them: the selection, the row, the rest.
  function onPage(row = currentRow()) {
    const elements = [...document.querySelectorAll("[data-command]")].filter((element) => !isHidden(element));
    const inBar = elements.filter((element) => element.closest("#selection"));
    const isSelecting = document.body.hasAttribute("data-selecting");
    const ofRow = row ? elements.filter((element) => row.contains(element)) : [];
    const others = elements.filter((element) => !element.closest("#selection") && !rowOf(element));
    const describe = (group) => (element) => ({
      group, title: element.dataset.command, key: element.dataset.key ?? "", element,
      detail: group === "This row" ? labelOf(row) : "",
    });
    return [
      ...(isSelecting ? inBar.map(describe("Selection")) : []),
      ...ofRow.map(describe("This row")),
      ...others.map(describe("This page")),
      ...(isSelecting || !document.querySelector("[data-select]") ? [] : inBar.filter((element) => element.matches("[data-select-all]")).map(describe("Selection"))),
    ];
  }

  const isAllowed = (command) => !command.needs || rights.has(command.needs);
  // Undo is offered only after something was done, for example.
  const isThere = (command) => !command.click || document.querySelector(command.click) !== null;
  const all = (row) => [...onPage(row), ...listed.filter((command) => command.when()), ...(base === undefined ? [] : global.filter(isAllowed))];

  function send(action, fields = {}) {
    const form = document.createElement("form");
    form.method = "post";
    form.action = action;
    for (const [name, value] of Object.entries({ ...fields, form_secret: secret })) {
      const field = document.createElement("input");
      field.type = "hidden";
      field.name = name;
      field.value = value;
      form.append(field);
    }
    document.body.append(form);
    form.submit();
  }

  // A live update may have replaced the element since the palette was opened.
  const present = (element) => (element.isConnected ? element : document.getElementById(element.id) ?? element);

  function use(element) {
    if (element.matches("input:not([type=checkbox], [type=file]), textarea")) { element.focus(); return; }
    element.click();
    // A menu with a text field is handled by the listener of `toggle`.
    if (element.matches("summary") && element.parentElement.open) element.parentElement.querySelector("input, .menu-body button")?.focus();
  }

  function run(command, event) {
    if (command.run) command.run(event);
    else if (command.element) use(present(command.element));
    else if (command.click) use(document.querySelector(command.click));
    else if (command.path !== undefined) location.assign(base + command.path);
    else if (command.link) location.assign(command.link);
    else if (command.stays) window.htmx.ajax("POST", command.post, { values: command.fields, swap: "none" });
    else if (command.post) send(command.post, command.fields);
  }

  // What is typed after a click on a menu goes into its first field.
  document.addEventListener("toggle", (event) => {
    if (event.target.matches("details.menu[open]")) event.target.querySelector("input:not([type=hidden]), textarea")?.focus();
  }, true);

  // Keys. A key that begins others waits for the next one: `g p`.
  const isTyping = (element) => element.closest("input:not([type=checkbox]), textarea, select, [contenteditable], .find") !== null;
  const nameOf = (event) => (event.key.length === 1 && event.shiftKey && /[a-z]/i.test(event.key) ? `Shift+${event.key.toLowerCase()}` : event.key);
  let prefix = "";
  let timer = 0;

  document.addEventListener("keydown", (event) => {
    if ((event.ctrlKey || event.metaKey) && !event.altKey && !event.shiftKey && event.key.toLowerCase() === "k") {
      const button = document.querySelector("[data-palette]");
      if (button) { event.preventDefault(); button.click(); }
      return;
    }
    if (event.defaultPrevented || event.ctrlKey || event.metaKey || event.altKey || isTyping(event.target)) return;
    if (document.querySelector("dialog[open], :popover-open, details.menu[open]")) return;
    // The browser handles Enter and Space on links and buttons.
    if (event.key === "Enter" || event.key === " ") return;
    const pressed = prefix + nameOf(event);
    const commands = all();
    prefix = "";
    clearTimeout(timer);
    const found = commands.find((command) => keysOf(command).includes(pressed) && isThere(command));
    if (found) {
      event.preventDefault();
      run(found, event);
    } else if (commands.some((command) => keysOf(command).some((key) => key.startsWith(pressed + " ")))) {
      prefix = pressed + " ";
      timer = setTimeout(() => { prefix = ""; }, 1500);
    }
  });
  const keysOf = (command) => (Array.isArray(command.key) ? command.key : command.key ? [command.key] : []);

  // Show a key as people read it.
  const isMac = /Mac|iP(hone|ad)/.test(navigator.platform);
  const names = { Mod: isMac ? "⌘" : "Ctrl", Shift: isMac ? "⇧" : "Shift", ArrowLeft: "←", ArrowRight: "→", Escape: "Esc" };
  function showKey(key) {
    const box = document.createElement("span");
    box.className = "key";
    for (const part of key.split(/[ +]/)) {
      const item = document.createElement("kbd");
      item.textContent = names[part] ?? (part.length === 1 ? part.toUpperCase() : part);
      box.append(item);
    }
    return box;
  }

  // The dialog of shortcuts has a group for each place, and each command once.
  function openHelp() {
    const dialog = document.getElementById("keys");
    const row = currentRow() ?? document.querySelector(ROW);
    const groups = new Map();
    const seen = new Set();
    for (const command of [...listed.filter((command) => command.when()), ...helpOfSelection(), ...all(row)]) {
      const group = { "This row": "Lists", Create: "General" }[command.group] ?? command.group;
      const title = `${group} ${command.title}`;
      if (!keysOf(command).length || seen.has(title)) continue;
      seen.add(title);
      if (!groups.has(group)) groups.set(group, []);
      groups.get(group).push(command);
    }
    const order = ["General", "Go to", "This page", "Lists", "Selection"];
    const list = dialog.querySelector("[data-keys]");
    list.replaceChildren(...[...groups].sort(([a], [b]) => order.indexOf(a) - order.indexOf(b)).map(([group, commands]) => {
      const section = document.createElement("section");
      const title = document.createElement("h3");
      title.textContent = group;
      const entries = document.createElement("dl");
      entries.className = "keys";
      for (const command of commands) {
        const keys = document.createElement("dt");
        const shown = command.shownKeys ?? keysOf(command);
        keys.append(...shown.flatMap((key, index) => (index ? [" ", showKey(key)] : [showKey(key)])));
        const what = document.createElement("dd");
        what.textContent = command.title;
        entries.append(keys, what);
      }
      section.append(title, entries);
      return section;
    }));
    dialog.showModal();
  }
  // The bar of the selection has keys even before something is selected.
  const helpOfSelection = () => [...document.querySelectorAll("#selection [data-command]")].map((element) => ({
    group: "Selection", title: element.dataset.command, key: element.dataset.key ?? "",
  }));

  document.addEventListener("click", (event) => { if (event.target.closest("[data-dialog=keys]")) openHelp(); });

  // Scripts of pages add commands about their lists: { title, key, shownKeys, when(), run(event) }.
  const add = (commands) => listed.push(...commands.map((command) => ({ group: "Lists", when: () => true, hidden: true, ...command })));

  return { base, add, all, isThere, keysOf, run, showKey, currentRow, rowOf, labelOf };
})();
