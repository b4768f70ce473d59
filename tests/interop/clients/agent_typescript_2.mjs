// The official TypeScript client 2 as a client of the profile `agent`.

import { callTools, capabilities, fillIn, listRoots } from './agent_scenario.mjs';
import { load, plan, transport } from './interop_scenario.mjs';

const { Client, StreamableHTTPClientTransport } = load('@modelcontextprotocol/client');
const { StdioClientTransport } = load('@modelcontextprotocol/client/stdio');
const { Ajv } = load('@modelcontextprotocol/client/validators/ajv');

const options = { capabilities, versionNegotiation: { mode: plan.mode } };
const client = new Client({ name: 'typescript-2', version: '1' }, options);
client.setRequestHandler('elicitation/create', fillIn);
if (plan.roots) client.setRequestHandler('roots/list', listRoots);
await client.connect(transport(StdioClientTransport, StreamableHTTPClientTransport));
await callTools(client, Ajv);
