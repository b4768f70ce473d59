// Resources: uploading files, replacing a content by a file, copying a document, keys.
"use strict";

(() => {
  const secret = document.querySelector('meta[name="form-secret"]')?.content ?? "";
  const megabytes = (count) => `${Math.round(count / 100000) / 10} MB`;

  // What works only here is hidden until then.
  const reveal = (root) => {
    for (const item of root.querySelectorAll("[data-drop], [data-replace], [data-copy-from]")) item.hidden = false;
  };
  reveal(document);
  document.addEventListener("htmx:load", (event) => reveal(event.detail.elt));

  // One line of the list of uploads.
  function line(list, name) {
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

  function fail(shown, words) {
    shown.bar.remove();
    shown.state.className = "field-problem";
    shown.state.textContent = words;
  }

  // Send a file as it is; `done` and `refused` are called with what the server says.
  function send(address, file, shown, done, refused) {
    const request = new XMLHttpRequest();
    request.open("POST", address);
    request.setRequestHeader("X-Form-Secret", secret);
    request.setRequestHeader("Content-Type", "application/octet-stream");
    request.upload.addEventListener("progress", (event) => {
      if (event.lengthComputable) shown.bar.value = event.loaded / event.total;
    });
    request.addEventListener("load", () => {
      let said = {};
      try {
        said = JSON.parse(request.responseText);
      } catch {
        said = { problem: `The server refused it (${request.status}).` };
      }
      request.status === 200 ? done(said) : refused(said);
    });
    request.addEventListener("error", () => fail(shown, "The server cannot be reached. Try again."));
    request.send(file);
  }

  function isTooLarge(place, file, shown) {
    const most = Number(place.dataset.maxBytes);
    if (file.size <= most) return false;
    fail(shown, `It has ${megabytes(file.size)}; at most ${megabytes(most)} are allowed.`);
    return true;
  }

  function add(place, file) {
    const shown = line(place.querySelector(".uploads"), file.name);
    if (!isTooLarge(place, file, shown)) upload(place, file, shown, false);
  }

  function upload(place, file, shown, replaces) {
    const address = `${place.dataset.to}?name=${encodeURIComponent(file.name)}${replaces ? "&replace=1" : ""}`;
    send(address, file, shown, (said) => {
      shown.bar.value = 1;
      const link = document.createElement("a");
      link.href = said.link;
      link.textContent = said.name;
      shown.label.replaceChildren(link);
      shown.state.className = "quiet small";
      shown.state.textContent = replaces ? "Replaced" : "Added";
    }, (said) => {
      if (!said.taken) return fail(shown, said.problem);
      const button = document.createElement("button");
      button.type = "button";
      button.className = "button";
      button.textContent = "Replace it";
      button.setAttribute("aria-label", `Replace the content of ${file.name}`);
      button.addEventListener("click", () => {
        button.remove();
        shown.item.append(shown.bar, shown.state);
        shown.state.textContent = "";
        upload(place, file, shown, true);
      });
      fail(shown, said.problem);
      shown.item.append(button);
    });
  }

  function replace(place, file) {
    const list = place.querySelector(".uploads");
    list.replaceChildren();
    const shown = line(list, file.name);
    if (isTooLarge(place, file, shown)) return;
    send(place.dataset.to, file, shown, (said) => location.assign(said.link), (said) => fail(shown, said.problem));
  }

  const takes = (place, files) => {
    if (place.dataset.replace !== undefined) {
      if (files.length) replace(place, files[0]);
    } else {
      for (const file of files) add(place, file);
    }
  };

  for (const place of document.querySelectorAll("[data-drop], [data-replace]")) {
    const field = place.querySelector('input[type="file"]');
    field.addEventListener("change", () => {
      takes(place, [...field.files]);
      field.value = "";
    });
  }

  // Files may be dropped anywhere on the page; there is only one place that takes them.
  const place = document.querySelector("[data-drop], [data-replace]");
  if (place) {
    const hasFiles = (event) => [...(event.dataTransfer?.types ?? [])].includes("Files");
    document.addEventListener("dragover", (event) => {
      if (!hasFiles(event)) return;
      event.preventDefault();
      place.classList.add("over");
    });
    document.addEventListener("dragleave", (event) => {
      if (!event.relatedTarget) place.classList.remove("over");
    });
    document.addEventListener("drop", (event) => {
      if (!hasFiles(event)) return;
      event.preventDefault();
      place.classList.remove("over");
      takes(place, [...event.dataTransfer.files]);
    });
  }

  document.addEventListener("click", async (event) => {
    const copy = event.target.closest("[data-copy-from]");
    if (copy) await copyDocument(copy);
  });

  // The whole document, however much of it the page shows.
  async function copyDocument(button) {
    const label = button.querySelector("[data-label]");
    const before = label.dataset.before ?? label.textContent;
    label.dataset.before = before;
    try {
      const answer = await fetch(button.dataset.copyFrom);
      if (!answer.ok) throw new Error("refused");
      await navigator.clipboard.writeText(await answer.text());
      label.textContent = "Copied";
    } catch {
      label.textContent = "Download it instead";
    }
    setTimeout(() => { label.textContent = before; }, 1500);
  }

  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    if (event.target.closest("input, textarea, select") || document.querySelector("dialog[open]")) return;
    if (event.key === "e") document.querySelector("[data-edit]")?.click();
    if (event.key === "u") document.getElementById("files")?.click();
  });
})();
