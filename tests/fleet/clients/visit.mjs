// What both official TypeScript clients do with a fleet, and what they saw, as one JSON document.

import assert from 'node:assert';
import { createRequire } from 'node:module';
import { join } from 'node:path';

const PATIENCE_MS = 10_000;

export const UPDATED = 'notifications/resources/updated';
export const plan = JSON.parse(process.argv[2]);

// The packages live in an environment of their own, not beside this file.
export const load = createRequire(join(plan.home, 'package.json'));

export function transport(Http) {
    return new Http(new URL(plan.url), { requestInit: { headers: plan.headers } });
}

// Hears of the first resource that has changed.
export class Ear {
    constructor() {
        this.heard = new Promise((resolve) => {
            this.note = ({ params }) => resolve(params.uri);
        });
    }

    async next() {
        let timer;
        const late = new Promise((_, reject) => {
            timer = setTimeout(() => reject(new Error('nothing was heard of the change')), PATIENCE_MS);
        });
        try {
            return await Promise.race([this.heard, late]);
        } finally {
            clearTimeout(timer);
        }
    }
}

export async function visit(client, version, watch, ear) {
    const { name, uri } = plan;
    const call = async (tool, args) => {
        const result = await client.callTool({ name: tool, arguments: args });
        assert(!result.isError, JSON.stringify(result));
    };
    const { tools } = await client.listTools();
    await call('create_prompt', { name, ...plan.prompt });
    const { prompts } = await client.listPrompts();
    const prompt = await client.getPrompt({ name, arguments: plan.arguments });
    await call('create_resource', { name, uri, content: 'one' });
    const { resources } = await client.listResources();
    await watch(uri);
    await call('update_resource', { name, content: 'two' });
    const told = await ear.next();
    const read = await client.readResource({ uri });
    await client.transport.terminateSession?.();
    await client.close();
    const seen = {
        version,
        tools: tools.map((tool) => tool.name),
        prompts: prompts.map((item) => item.name),
        prompt: prompt.messages[0].content.text,
        resources: resources.map((resource) => resource.uri),
        told,
        read: read.contents[0].text,
    };
    console.log(JSON.stringify(seen));
}
