// The official TypeScript SDK 1 as a client of the everything server.

import { CHANGES, ClientAdapter, answers, load, runScenario, transport } from './interop_scenario.mjs';

const { Client } = load('@modelcontextprotocol/sdk/client/index.js');
const { StdioClientTransport } = load('@modelcontextprotocol/sdk/client/stdio.js');
const { StreamableHTTPClientTransport } = load('@modelcontextprotocol/sdk/client/streamableHttp.js');
const types = load('@modelcontextprotocol/sdk/types.js');

// This SDK identifies a method by its schema.
const SCHEMAS = {
    'elicitation/create': types.ElicitRequestSchema,
    'sampling/createMessage': types.CreateMessageRequestSchema,
    'roots/list': types.ListRootsRequestSchema,
    'notifications/tools/list_changed': types.ToolListChangedNotificationSchema,
    'notifications/prompts/list_changed': types.PromptListChangedNotificationSchema,
    'notifications/resources/list_changed': types.ResourceListChangedNotificationSchema,
    'notifications/resources/updated': types.ResourceUpdatedNotificationSchema,
    'notifications/message': types.LoggingMessageNotificationSchema,
};

// The SDK passes the negotiated version only to the transport.
class Stdio extends StdioClientTransport {
    setProtocolVersion(version) {
        this.protocolVersion = version;
    }
}

class TypeScript1Adapter extends ClientAdapter {
    negotiatedVersion() {
        return this.client.transport.protocolVersion;
    }

    async call(name, args, options = {}, level = undefined) {
        if (level) await this.client.setLoggingLevel(level);
        return this.client.callTool({ name, arguments: args }, types.CallToolResultSchema, options);
    }

    async subscribe(uri) {
        await this.client.subscribeResource({ uri });
        return () => {};
    }
}

const client = new Client(
    { name: 'typescript-1', version: '1' },
    { capabilities: { elicitation: {}, sampling: {}, roots: {} } },
);
const adapter = new TypeScript1Adapter(client);
for (const [method, answer] of Object.entries(answers)) client.setRequestHandler(SCHEMAS[method], answer);
for (const method of CHANGES) {
    client.setNotificationHandler(SCHEMAS[method], (notification) => adapter.recordChange(method, notification));
}
client.setNotificationHandler(SCHEMAS['notifications/message'], ({ params }) => adapter.logs.put(params));
await client.connect(transport(Stdio, StreamableHTTPClientTransport));
await runScenario(adapter);
