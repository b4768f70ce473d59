// The official TypeScript SDK 1 as a client that requests prompts from Dittybag.

import { load, transport } from './interop_scenario.mjs';
import { requestPrompts } from './prompts_scenario.mjs';

const { Client } = load('@modelcontextprotocol/sdk/client/index.js');
const { StdioClientTransport } = load('@modelcontextprotocol/sdk/client/stdio.js');
const { StreamableHTTPClientTransport } = load('@modelcontextprotocol/sdk/client/streamableHttp.js');
const { ElicitRequestSchema } = load('@modelcontextprotocol/sdk/types.js');

await requestPrompts(async (fillIn) => {
    const capabilities = fillIn ? { elicitation: {} } : {};
    const client = new Client({ name: 'typescript-1', version: '1' }, { capabilities });
    if (fillIn) client.setRequestHandler(ElicitRequestSchema, fillIn);
    await client.connect(transport(StdioClientTransport, StreamableHTTPClientTransport));
    return client;
});
