// The official TypeScript client 2 with Satchel.

import { load, plan } from './scenario.mjs';
import { visit } from './store.mjs';

const { Client } = load('@modelcontextprotocol/client');
const { StdioClientTransport } = load('@modelcontextprotocol/client/stdio');

const client = new Client({ name: 'typescript-2', version: '1' }, { versionNegotiation: { mode: plan.mode } });
await client.connect(new StdioClientTransport(plan.server));
await visit(client, plan);
