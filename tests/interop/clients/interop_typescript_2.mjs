// The official TypeScript client 2 as a client of the everything server.

import { CHANGES, ClientAdapter, answers, load, plan, runScenario, transport } from './interop_scenario.mjs';

const { Client, StreamableHTTPClientTransport } = load('@modelcontextprotocol/client');
const { StdioClientTransport } = load('@modelcontextprotocol/client/stdio');

const LOG_LEVEL = 'io.modelcontextprotocol/logLevel';

class TypeScript2Adapter extends ClientAdapter {
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

    async subscribe(uri) {
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
const adapter = new TypeScript2Adapter(client);
for (const [method, answer] of Object.entries(answers)) client.setRequestHandler(method, answer);
for (const method of CHANGES) {
    client.setNotificationHandler(method, (notification) => adapter.recordChange(method, notification));
}
client.setNotificationHandler('notifications/message', ({ params }) => adapter.logs.put(params));
await client.connect(transport(StdioClientTransport, StreamableHTTPClientTransport));
await runScenario(adapter);
