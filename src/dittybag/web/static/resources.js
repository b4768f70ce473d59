// Resource pages: uploads, and replacing content with a file.
"use strict";

(() => {
  const secret = document.querySelector('meta[name="form-secret"]')?.content ?? "";
  const mebibytes = (count) => `${Math.round(count / 1024 / 102.4) / 10} MiB`;

  // Elements that need JavaScript are hidden in the HTML; show them.
  const reveal = (root) => {
    for (const item of root.querySelectorAll("[data-drop], [data-replace], [data-copy-from]")) item.hidden = false;
  };
  reveal(document);
  document.addEventListener("htmx:load", (event) => reveal(event.detail.elt));

  // Add a row to the list of uploads.
  function addRow(list, name) {
    const item = document.createElement("li");
    const label = document.createElement("span");
    label.className = "wrap";
    label.textContent = name;
    const bar = document.createElement("progress");
    bar.max = 1;
    bar.value = 0;
    bar.setAttribute("aria-label", `Progress of ${name}`);
    const state = document.createElement("span");
    state.className = "quiet small";
    item.append(label, bar, state);
    list.append(item);
    return { item, label, bar, state };
  }

  function fail(row, message) {
    row.bar.remove();
    row.state.className = "field-problem";
    row.state.textContent = message;
  }

  // Send a file as the request body; `done` or `refused` is called with the decoded response.
  function send(address, file, row, done, refused) {
    const request = new XMLHttpRequest();
    request.open("POST", address);
    request.setRequestHeader("X-Form-Secret", secret);
    request.setRequestHeader("Content-Type", "application/octet-stream");
    request.upload.addEventListener("progress", (event) => {
      if (event.lengthComputable) row.bar.value = event.loaded / event.total;
    });
    request.addEventListener("load", () => {
      let response = {};
      try {
        response = JSON.parse(request.responseText);
      } catch {
        response = { problem: `The server rejected the file (${request.status}).` };
      }
      request.status === 200 ? done(response) : refused(response);
    });
    request.addEventListener("error", () => fail(row, "The server cannot be reached. Try again."));
    request.send(file);
  }

  function isTooLarge(target, file, row) {
    const limit = Number(target.dataset.maxBytes);
    if (file.size <= limit) return false;
    fail(row, `The file is too large: ${mebibytes(file.size)} (maximum ${mebibytes(limit)}).`);
    return true;
  }

  function add(target, file) {
    const row = addRow(target.querySelector(".uploads"), file.name);
    if (!isTooLarge(target, file, row)) upload(target, file, row, false);
  }

  function upload(target, file, row, replaces) {
    const address = `${target.dataset.to}?name=${encodeURIComponent(file.name)}${replaces ? "&replace=1" : ""}`;
    send(address, file, row, (response) => {
      row.bar.value = 1;
      const link = document.createElement("a");
      link.href = response.link;
      link.textContent = response.name;
      row.label.replaceChildren(link);
      row.state.className = "quiet small";
      row.state.textContent = replaces ? "Replaced" : "Added";
    }, (response) => {
      if (!response.taken) return fail(row, response.problem);
      const button = document.createElement("button");
      button.type = "button";
      button.className = "button";
      button.textContent = "Replace";
      button.setAttribute("aria-label", `Replace the content of ${file.name}`);
      button.addEventListener("click", () => {
        button.remove();
        row.item.append(row.bar, row.state);
        row.state.textContent = "";
        upload(target, file, row, true);
      });
      fail(row, response.problem);
      row.item.append(button);
    });
  }

  function replace(target, file) {
    const list = target.querySelector(".uploads");
    list.replaceChildren();
    const row = addRow(list, file.name);
    if (isTooLarge(target, file, row)) return;
    send(target.dataset.to, file, row, (response) => location.assign(response.link), (response) => fail(row, response.problem));
  }

  const accept = (target, files) => {
    if (target.dataset.replace !== undefined) {
      if (files.length) replace(target, files[0]);
    } else {
      for (const file of files) add(target, file);
    }
  };

  for (const target of document.querySelectorAll("[data-drop], [data-replace]")) {
    const field = target.querySelector('input[type="file"]');
    field.addEventListener("change", () => {
      accept(target, [...field.files]);
      field.value = "";
    });
  }

  // Files may be dropped anywhere on the page: each page has only one upload target.
  const target = document.querySelector("[data-drop], [data-replace]");
  if (target) {
    const hasFiles = (event) => [...(event.dataTransfer?.types ?? [])].includes("Files");
    document.addEventListener("dragover", (event) => {
      if (!hasFiles(event)) return;
      event.preventDefault();
      target.classList.add("over");
    });
    document.addEventListener("dragleave", (event) => {
      if (!event.relatedTarget) target.classList.remove("over");
    });
    document.addEventListener("drop", (event) => {
      if (!hasFiles(event)) return;
      event.preventDefault();
      target.classList.remove("over");
      accept(target, [...event.dataTransfer.files]);
    });
  }
})();
