// The echo server with the low-level server of the official TypeScript SDK 2.

import { Server } from "@modelcontextprotocol/server";
import { StdioServerTransport } from "@modelcontextprotocol/server/stdio";

const tools = [
  {
    name: "echo",
    description: "Returns the text.",
    inputSchema: { type: "object", properties: { text: { type: "string" } }, required: ["text"] },
  },
];

const server = new Server({ name: "echo", version: "1.0" }, { capabilities: { tools: {} } });
server.setRequestHandler("tools/list", () => ({ tools }));
server.setRequestHandler("tools/call", (request) => ({
  content: [{ type: "text", text: request.params.arguments.text }],
}));
await server.connect(new StdioServerTransport());
