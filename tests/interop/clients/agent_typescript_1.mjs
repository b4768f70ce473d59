// The official TypeScript SDK 1 as a client of the profile `agent`.

import { callTools, fillIn } from './agent_scenario.mjs';
import { load, transport } from './interop_scenario.mjs';

const { Client } = load('@modelcontextprotocol/sdk/client/index.js');
const { StdioClientTransport } = load('@modelcontextprotocol/sdk/client/stdio.js');
const { StreamableHTTPClientTransport } = load('@modelcontextprotocol/sdk/client/streamableHttp.js');
const { ElicitRequestSchema } = load('@modelcontextprotocol/sdk/types.js');
const { Ajv2020 } = load('ajv/dist/2020.js');

const client = new Client({ name: 'typescript-1', version: '1' }, { capabilities: { elicitation: {} } });
client.setRequestHandler(ElicitRequestSchema, fillIn);
await client.connect(transport(StdioClientTransport, StreamableHTTPClientTransport));
await callTools(client, Ajv2020);
