// The official TypeScript client 2 as a client that requests prompts from Dittybag.

import { load, plan, transport } from './interop_scenario.mjs';
import { requestPrompts } from './prompts_scenario.mjs';

const { Client, StreamableHTTPClientTransport } = load('@modelcontextprotocol/client');
const { StdioClientTransport } = load('@modelcontextprotocol/client/stdio');

await requestPrompts(async (fillIn) => {
    const capabilities = fillIn ? { elicitation: {} } : {};
    const options = { capabilities, versionNegotiation: { mode: plan.mode } };
    const client = new Client({ name: 'typescript-2', version: '1' }, options);
    if (fillIn) client.setRequestHandler('elicitation/create', fillIn);
    await client.connect(transport(StdioClientTransport, StreamableHTTPClientTransport));
    return client;
});
