// Prints what GitHub's language service finds in workflows: node workflow_language.mjs PACKAGES FILE...
import { readFileSync } from "node:fs";
import { createRequire, registerHooks } from "node:module";
import { pathToFileURL } from "node:url";

const [packages, ...files] = process.argv.slice(2);
// The service imports JSON as an older version of the language did.
registerHooks({
  load: (url, context, next) =>
    next(url, url.endsWith(".json") ? { ...context, importAttributes: { type: "json" } } : context),
});
const load = (path) => import(pathToFileURL(`${packages}/${path}`));
const { validate } = await load("@actions/languageservice/dist/validate.js");
const { TextDocument } = createRequire(`${packages}/`)("vscode-languageserver-textdocument");

for (const file of files) {
  const document = TextDocument.create(pathToFileURL(file).href, "yaml", 1, readFileSync(file, "utf8"));
  for (const { range, message } of await validate(document, {})) {
    console.log(`${file}:${range.start.line + 1}: ${message}`);
  }
}
