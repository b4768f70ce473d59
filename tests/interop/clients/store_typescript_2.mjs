// The official TypeScript client 2 with Dittybag.

import { load, plan, transport } from './scenario.mjs';
import { visit } from './store.mjs';

const { Client, StreamableHTTPClientTransport } = load('@modelcontextprotocol/client');
const { StdioClientTransport } = load('@modelcontextprotocol/client/stdio');

const client = new Client({ name: 'typescript-2', version: '1' }, { versionNegotiation: { mode: plan.mode } });
await client.connect(transport(StdioClientTransport, StreamableHTTPClientTransport));
await visit(client, plan);
