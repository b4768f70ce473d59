// The official TypeScript SDK 1 reads the skills of Dittybag.

import { load, transport } from './interop_scenario.mjs';
import { readSkills } from './skills_scenario.mjs';

const { Client } = load('@modelcontextprotocol/sdk/client/index.js');
const { StdioClientTransport } = load('@modelcontextprotocol/sdk/client/stdio.js');
const { StreamableHTTPClientTransport } = load('@modelcontextprotocol/sdk/client/streamableHttp.js');

const client = new Client({ name: 'typescript-1', version: '1' });
await client.connect(transport(StdioClientTransport, StreamableHTTPClientTransport));
await readSkills(client);
