// The official TypeScript SDK 1 as a client of the fixture.

import { CHANGES, Peer, answers, load, observe, transport } from './scenario.mjs';

const { Client } = load('@modelcontextprotocol/sdk/client/index.js');
const { StdioClientTransport } = load('@modelcontextprotocol/sdk/client/stdio.js');
const { StreamableHTTPClientTransport } = load('@modelcontextprotocol/sdk/client/streamableHttp.js');
const types = load('@modelcontextprotocol/sdk/types.js');

// This SDK names a message by its schema.
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

// It keeps the agreed version to itself, but tells the transport.
class Stdio extends StdioClientTransport {
    setProtocolVersion(version) {
        this.protocolVersion = version;
    }
}

class Peer1 extends Peer {
    negotiatedVersion() {
        return this.client.transport.protocolVersion;
    }

    async call(name, args, options = {}, level = undefined) {
        if (level) await this.client.setLoggingLevel(level);
        return this.client.callTool({ name, arguments: args }, types.CallToolResultSchema, options);
    }

    async watch(uri) {
        await this.client.subscribeResource({ uri });
        return () => {};
    }
}

const client = new Client(
    { name: 'typescript-1', version: '1' },
    { capabilities: { elicitation: {}, sampling: {}, roots: {} } },
);
const peer = new Peer1(client);
for (const [method, answer] of Object.entries(answers)) client.setRequestHandler(SCHEMAS[method], answer);
for (const method of CHANGES) {
    client.setNotificationHandler(SCHEMAS[method], (notification) => peer.noteChange(method, notification));
}
client.setNotificationHandler(SCHEMAS['notifications/message'], ({ params }) => peer.logs.note(params));
await client.connect(transport(Stdio, StreamableHTTPClientTransport));
await observe(peer);
