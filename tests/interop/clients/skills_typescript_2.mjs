// The official TypeScript client 2 reads the skills of Dittybag.

import { load, plan, transport } from './interop_scenario.mjs';
import { readSkills } from './skills_scenario.mjs';

const { Client, StreamableHTTPClientTransport } = load('@modelcontextprotocol/client');
const { StdioClientTransport } = load('@modelcontextprotocol/client/stdio');

const client = new Client({ name: 'typescript-2', version: '1' }, { versionNegotiation: { mode: plan.mode } });
await client.connect(transport(StdioClientTransport, StreamableHTTPClientTransport));
await readSkills(client);
