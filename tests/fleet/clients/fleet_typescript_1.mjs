// The official TypeScript SDK 1 as a client of a fleet.

import { UpdateListener, load, runScenario, transport } from './fleet_scenario.mjs';

const { Client } = load('@modelcontextprotocol/sdk/client/index.js');
const { StreamableHTTPClientTransport } = load('@modelcontextprotocol/sdk/client/streamableHttp.js');
const { ResourceUpdatedNotificationSchema } = load('@modelcontextprotocol/sdk/types.js');

const client = new Client({ name: 'typescript-1', version: '1' });
const listener = new UpdateListener();
client.setNotificationHandler(ResourceUpdatedNotificationSchema, listener.handle);
await client.connect(transport(StreamableHTTPClientTransport));
const subscribe = (uri) => client.subscribeResource({ uri });
await runScenario(client, client.transport.protocolVersion, subscribe, listener);
