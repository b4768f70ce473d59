// The official TypeScript client 2 with the fixture.

import { CHANGES, Peer, answers, load, observe, plan, transport } from './scenario.mjs';

const { Client, StreamableHTTPClientTransport } = load('@modelcontextprotocol/client');
const { StdioClientTransport } = load('@modelcontextprotocol/client/stdio');

const LOG_LEVEL = 'io.modelcontextprotocol/logLevel';

class Peer2 extends Peer {
    get stateless() {
        return this.client.getProtocolEra() === 'modern';
    }

    negotiatedVersion() {
        return this.client.getNegotiatedProtocolVersion();
    }

    async call(name, args, options = {}, level = undefined) {
        if (level && !this.stateless) await this.client.setLoggingLevel(level);
        const meta = level && this.stateless ? { _meta: { [LOG_LEVEL]: level } } : {};
        return this.client.callTool({ name, arguments: args, ...meta }, options);
    }

    async watch(uri) {
        if (!this.stateless) {
            await this.client.subscribeResource({ uri });
            return () => {};
        }
        const subscription = await this.client.listen({
            toolsListChanged: true,
            promptsListChanged: true,
            resourcesListChanged: true,
            resourceSubscriptions: [uri],
        });
        return () => subscription.close();
    }
}

const client = new Client(
    { name: 'typescript-2', version: '1' },
    {
        capabilities: { elicitation: {}, sampling: {}, roots: {} },
        versionNegotiation: { mode: plan.mode },
    },
);
const peer = new Peer2(client);
for (const [method, answer] of Object.entries(answers)) client.setRequestHandler(method, answer);
for (const method of CHANGES) {
    client.setNotificationHandler(method, (notification) => peer.noteChange(method, notification));
}
client.setNotificationHandler('notifications/message', ({ params }) => peer.logs.note(params));
await client.connect(transport(StdioClientTransport, StreamableHTTPClientTransport));
await observe(peer);
