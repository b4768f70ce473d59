// The official TypeScript SDK 2 as a client of a fleet.

import { UPDATED, UpdateListener, load, plan, runScenario, transport } from './fleet_scenario.mjs';

const { Client, StreamableHTTPClientTransport } = load('@modelcontextprotocol/client');

const client = new Client({ name: 'typescript-2', version: '1' }, { versionNegotiation: { mode: plan.mode } });
const listener = new UpdateListener();
client.setNotificationHandler(UPDATED, listener.handle);
await client.connect(transport(StreamableHTTPClientTransport));
const subscribe = (uri) => client.listen({ resourceSubscriptions: [uri] });
await runScenario(client, client.getNegotiatedProtocolVersion(), subscribe, listener);
