// The official TypeScript client 2 with a fleet.

import { Ear, UPDATED, load, plan, transport, visit } from './visit.mjs';

const { Client, StreamableHTTPClientTransport } = load('@modelcontextprotocol/client');

const client = new Client({ name: 'typescript-2', version: '1' }, { versionNegotiation: { mode: plan.mode } });
const ear = new Ear();
client.setNotificationHandler(UPDATED, ear.note);
await client.connect(transport(StreamableHTTPClientTransport));
const watch = (uri) => client.listen({ resourceSubscriptions: [uri] });
await visit(client, client.getNegotiatedProtocolVersion(), watch, ear);
