// Load with the official TypeScript SDK 1. The second argument is its folder.

import { createRequire } from 'node:module';

import { note, plan, runLoad } from './http_plan.mjs';

const load = createRequire(`${process.argv[3]}/`);
const { Client } = load('@modelcontextprotocol/sdk/client/index.js');
const { StreamableHTTPClientTransport } = load('@modelcontextprotocol/sdk/client/streamableHttp.js');

const client = new Client({ name: 'load', version: '1' });
await client.connect(new StreamableHTTPClientTransport(new URL(plan.url)));
await runLoad(async (number) => {
  const id = plan.ids[number % plan.ids.length];
  const result = await client.callTool({ name: 'get_prompt', arguments: { id }, _meta: { note: note(number) } });
  if (result.isError) throw new Error(JSON.stringify(result));
});
await client.close();
