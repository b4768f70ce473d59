// The official TypeScript client 2, over stdio and HTTP.

import { connectClient, load, serve } from './client_plan.mjs';

const { Client, StreamableHTTPClientTransport } = load('@modelcontextprotocol/client');
const { StdioClientTransport } = load('@modelcontextprotocol/client/stdio');

await serve((plan) =>
  connectClient(
    new Client({ name: 'benchmark', version: '1' }), plan, StdioClientTransport, StreamableHTTPClientTransport,
  ),
);
