// The official TypeScript SDK 1 as a client of Dittybag.

import { load, plan, transport } from './interop_scenario.mjs';
import { callEveryTool } from './store_scenario.mjs';

const { Client } = load('@modelcontextprotocol/sdk/client/index.js');
const { StdioClientTransport } = load('@modelcontextprotocol/sdk/client/stdio.js');
const { StreamableHTTPClientTransport } = load('@modelcontextprotocol/sdk/client/streamableHttp.js');

const client = new Client({ name: 'typescript-1', version: '1' });
await client.connect(transport(StdioClientTransport, StreamableHTTPClientTransport));
await callEveryTool(client, plan);
