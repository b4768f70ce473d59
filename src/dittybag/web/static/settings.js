// Settings: the upload of a file to import.
"use strict";

(() => {
  const form = document.querySelector("[data-import]");
  if (!form) return;
  form.hidden = false;
  const secret = document.querySelector('meta[name="form-secret"]')?.content ?? "";
  const problem = form.querySelector("[data-problem]");
  const button = form.querySelector("button");

  async function upload(file) {
    if (file.size > Number(form.dataset.limit)) throw new Error("The file is too large. On the server, run: dittybag import FILE");
    const address = `${form.dataset.import}?name=${encodeURIComponent(file.name)}`;
    const headers = { "X-Form-Secret": secret, "Content-Type": "application/octet-stream" };
    const response = await fetch(address, { method: "POST", headers, body: file });
    const answer = await response.json().catch(() => ({}));
    if (!response.ok) throw new Error(answer.problem ?? `The server rejected the file (${response.status}).`);
    return answer.link;
  }

  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    const file = form.querySelector("input[type=file]").files[0];
    if (!file) return;
    problem.textContent = "";
    button.disabled = true;
    try {
      window.location.assign(await upload(file));
    } catch (error) {
      problem.textContent = error instanceof TypeError ? "The server cannot be reached. Try again." : error.message;
      button.disabled = false;
    }
  });
})();
