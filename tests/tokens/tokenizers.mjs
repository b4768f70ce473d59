// Counts the tokens of texts with public tokenizers. Argument: a folder with the packages. Reads one JSON string per
// line; writes one JSON object of numbers per line.
import { createInterface } from "node:readline";
import { createRequire } from "node:module";
import { pathToFileURL } from "node:url";

const require = createRequire(`${process.argv[2]}/package.json`);
const load = (name) => import(pathToFileURL(require.resolve(name)).href);

const plain = { allowedSpecial: new Set(), disallowedSpecial: new Set() };
const o200k = await load("gpt-tokenizer/encoding/o200k_base");
const cl100k = await load("gpt-tokenizer/encoding/cl100k_base");
const claude = (await load("@anthropic-ai/tokenizer")).getTokenizer();
const llama3 = (await load("llama3-tokenizer-js")).default;
const mistral = (await load("mistral-tokenizer-js")).default;

const counters = {
  o200k: (text) => o200k.countTokens(text, plain),
  cl100k: (text) => cl100k.countTokens(text, plain),
  claude: (text) => claude.encode(text.normalize("NFKC"), [], []).length,
  llama3: (text) => llama3.encode(text, { bos: false, eos: false }).length,
  mistral: (text) => mistral.encode(text, false, false).length,
};

if (process.argv[3] === "vocabulary") {
  // The smallest vocabulary: what all have in common is in it.
  console.log(JSON.stringify(mistral.vocabById));
} else {
  for await (const line of createInterface({ input: process.stdin })) {
    const text = JSON.parse(line);
    console.log(JSON.stringify(Object.fromEntries(Object.entries(counters).map(([name, count]) => [name, count(text)]))));
  }
}
