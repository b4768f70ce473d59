// The official TypeScript SDK 1 as a client, over stdio and HTTP.

import { connectClient, load, serve } from './client_plan.mjs';

const { Client } = load('@modelcontextprotocol/sdk/client/index.js');
const { StdioClientTransport } = load('@modelcontextprotocol/sdk/client/stdio.js');
const { StreamableHTTPClientTransport } = load('@modelcontextprotocol/sdk/client/streamableHttp.js');

await serve((plan) =>
  connectClient(
    new Client({ name: 'benchmark', version: '1' }), plan, StdioClientTransport, StreamableHTTPClientTransport,
  ),
);
