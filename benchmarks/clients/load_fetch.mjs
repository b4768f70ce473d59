// Load with Node's fetch.

import { note, plan, runLoad } from './http_plan.mjs';

const version = '2026-07-28';
const headers = {
  Accept: 'application/json, text/event-stream',
  'Content-Type': 'application/json',
  'MCP-Protocol-Version': version,
  'Mcp-Method': 'tools/call',
  'Mcp-Name': 'get_prompt',
};

await runLoad(async (number) => {
  const _meta = {
    'io.modelcontextprotocol/protocolVersion': version,
    'io.modelcontextprotocol/clientCapabilities': {},
    'io.modelcontextprotocol/clientInfo': { name: 'load', version: '1' },
    note: note(number),
  };
  const params = { name: 'get_prompt', arguments: { id: plan.ids[number % plan.ids.length] }, _meta };
  const body = JSON.stringify({ jsonrpc: '2.0', id: number, method: 'tools/call', params });
  const response = await fetch(plan.url, { method: 'POST', headers, body });
  const text = await response.text();
  if (!text.includes('"structuredContent"')) throw new Error(`${response.status} ${text}`);
});
