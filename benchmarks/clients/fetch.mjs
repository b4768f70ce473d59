// Node's fetch as a client: MCP over HTTP, in a session or without one.

import { serve } from './client_plan.mjs';

const HANDSHAKE = '2025-11-25';
const STATELESS = '2026-07-28';
const clientInfo = { name: 'benchmark', version: '1' };

async function connect(plan) {
  const headers = {
    Accept: 'application/json, text/event-stream',
    'Content-Type': 'application/json',
    'MCP-Protocol-Version': plan.session ? HANDSHAKE : STATELESS,
  };
  const meta = {};
  const post = (message) =>
    fetch(plan.url, { method: 'POST', headers, body: JSON.stringify({ jsonrpc: '2.0', ...message }) });
  if (plan.session) {
    const params = { protocolVersion: HANDSHAKE, capabilities: {}, clientInfo };
    const response = await post({ id: 0, method: 'initialize', params });
    await response.text();
    headers['Mcp-Session-Id'] = response.headers.get('Mcp-Session-Id');
    await (await post({ method: 'notifications/initialized', params: {} })).text();
  } else {
    headers['Mcp-Method'] = 'tools/call';
    headers['Mcp-Name'] = plan.tool;
    const described = { protocolVersion: STATELESS, clientCapabilities: {}, clientInfo };
    for (const [name, value] of Object.entries(described)) meta[`io.modelcontextprotocol/${name}`] = value;
  }
  let id = 0;
  return {
    listTools: () => {},
    call: async ([args, , note]) => {
      const params = { name: plan.tool, arguments: args, _meta: { ...meta, note } };
      return (await post({ id: ++id, method: 'tools/call', params })).text();
    },
    close: () => {},
  };
}

await serve(connect);
