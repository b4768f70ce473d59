// The official TypeScript SDK 1 as a client of a fleet.

import { Ear, load, transport, visit } from './visit.mjs';

const { Client } = load('@modelcontextprotocol/sdk/client/index.js');
const { StreamableHTTPClientTransport } = load('@modelcontextprotocol/sdk/client/streamableHttp.js');
const { ResourceUpdatedNotificationSchema } = load('@modelcontextprotocol/sdk/types.js');

const client = new Client({ name: 'typescript-1', version: '1' });
const ear = new Ear();
client.setNotificationHandler(ResourceUpdatedNotificationSchema, ear.note);
await client.connect(transport(StreamableHTTPClientTransport));
await visit(client, client.transport.protocolVersion, (uri) => client.subscribeResource({ uri }), ear);
