// The official TypeScript SDK 1 as a client of the profile `agent`.

import { callTools, capabilities, fillIn, listRoots } from './agent_scenario.mjs';
import { load, plan, transport } from './interop_scenario.mjs';

const { Client } = load('@modelcontextprotocol/sdk/client/index.js');
const { StdioClientTransport } = load('@modelcontextprotocol/sdk/client/stdio.js');
const { StreamableHTTPClientTransport } = load('@modelcontextprotocol/sdk/client/streamableHttp.js');
const { ElicitRequestSchema, ListRootsRequestSchema } = load('@modelcontextprotocol/sdk/types.js');
const { Ajv2020 } = load('ajv/dist/2020.js');

const client = new Client({ name: 'typescript-1', version: '1' }, { capabilities });
client.setRequestHandler(ElicitRequestSchema, fillIn);
if (plan.roots) client.setRequestHandler(ListRootsRequestSchema, listRoots);
await client.connect(transport(StdioClientTransport, StreamableHTTPClientTransport));
await callTools(client, Ajv2020);
