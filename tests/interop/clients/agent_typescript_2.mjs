// The official TypeScript client 2 as a client of the profile `agent`.

import { callTools, fillIn } from './agent_scenario.mjs';
import { load, plan, transport } from './interop_scenario.mjs';

const { Client, StreamableHTTPClientTransport } = load('@modelcontextprotocol/client');
const { StdioClientTransport } = load('@modelcontextprotocol/client/stdio');
const { Ajv } = load('@modelcontextprotocol/client/validators/ajv');

const options = { capabilities: { elicitation: {} }, versionNegotiation: { mode: plan.mode } };
const client = new Client({ name: 'typescript-2', version: '1' }, options);
client.setRequestHandler('elicitation/create', fillIn);
await client.connect(transport(StdioClientTransport, StreamableHTTPClientTransport));
await callTools(client, Ajv);
