// The scenario of both official TypeScript clients against a fleet. Prints what they received as JSON.

import assert from 'node:assert';
import { createRequire } from 'node:module';
import { join } from 'node:path';

const TIMEOUT_MS = 10_000;

export const UPDATED = 'notifications/resources/updated';
export const plan = JSON.parse(process.argv[2]);

// The packages are installed in their own environment, not next to this file.
export const load = createRequire(join(plan.home, 'package.json'));

export function transport(Http) {
    return new Http(new URL(plan.url), { requestInit: { headers: plan.headers } });
}

// Waits for the first notification about an updated resource.
export class UpdateListener {
    constructor() {
        this.updatedUri = new Promise((resolve) => {
            this.handle = ({ params }) => resolve(params.uri);
        });
    }

    async next() {
        let timer;
        const timeout = new Promise((_, reject) => {
            timer = setTimeout(() => reject(new Error('no notification about the update')), TIMEOUT_MS);
        });
        try {
            return await Promise.race([this.updatedUri, timeout]);
        } finally {
            clearTimeout(timer);
        }
    }
}

export async function runScenario(client, version, subscribe, listener) {
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
    await subscribe(uri);
    await call('update_resource', { name, content: 'two' });
    const updatedUri = await listener.next();
    const read = await client.readResource({ uri });
    await client.transport.terminateSession?.();
    await client.close();
    const results = {
        version,
        tools: tools.map((tool) => tool.name),
        prompts: prompts.map((item) => item.name),
        prompt: prompt.messages[0].content.text,
        resources: resources.map((resource) => resource.uri),
        updated_uri: updatedUri,
        read: read.contents[0].text,
    };
    console.log(JSON.stringify(results));
}
