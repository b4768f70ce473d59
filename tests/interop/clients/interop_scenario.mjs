// The scenario that every TypeScript client runs with the everything server; prints its results as JSON.
//
// The plan is the first argument. Each version of the SDK has its own subclass of ClientAdapter.

import { createRequire } from 'node:module';
import { join } from 'node:path';

const TIMEOUT_MS = 10_000;

export const plan = JSON.parse(process.argv[2]);

// The packages are in a separate environment, not next to this file.
export const load = createRequire(join(plan.home, 'package.json'));

// Returns the transport for a server with a URL or a command.
export function transport(Stdio, Http) {
    return plan.server.url ? new Http(new URL(plan.server.url)) : new Stdio(plan.server);
}

// Over HTTP, a session stays open unless the client ends it.
export async function disconnect(client) {
    await client.transport.terminateSession?.();
    await client.close();
}

// A queue of received notifications.
export class NotificationQueue {
    #notifications = [];
    #waiting = [];

    put(notification) {
        const next = this.#waiting.shift();
        if (next) next(notification);
        else this.#notifications.push(notification);
    }

    next() {
        const ready = this.#notifications.shift();
        if (ready) return Promise.resolve(ready);
        return new Promise((resolve) => this.#waiting.push(resolve));
    }
}

// The client's responses to requests for input.
export const inputRequests = [];
export const answers = {
    'elicitation/create': ({ params }) => {
        inputRequests.push({ method: 'elicitation/create', params });
        const fields = Object.keys(params.requestedSchema.properties);
        const given = Object.entries(plan.form).filter(([name]) => fields.includes(name));
        return { action: 'accept', content: Object.fromEntries(given) };
    },
    'sampling/createMessage': ({ params }) => {
        inputRequests.push({ method: 'sampling/createMessage', params });
        const content = { type: 'text', text: plan.sample };
        return { role: 'assistant', content, model: 'test-model', stopReason: 'endTurn' };
    },
    'roots/list': () => {
        inputRequests.push({ method: 'roots/list' });
        return { roots: plan.roots };
    },
};

export const CHANGES = [
    'notifications/tools/list_changed',
    'notifications/prompts/list_changed',
    'notifications/resources/list_changed',
    'notifications/resources/updated',
];

async function outcome(request) {
    try {
        return { result: await request };
    } catch (error) {
        if (typeof error.code !== 'number') throw error;
        return { error: { code: error.code, message: error.message, data: error.data ?? null } };
    }
}

async function outcomes(requests, send) {
    const seen = {};
    for (const [key, request] of Object.entries(requests)) seen[key] = await outcome(send(request));
    return seen;
}

// Returns the notifications that arrive before the timeout. The test checks for missing ones.
async function collect(queue, count) {
    let timer;
    const late = new Promise((resolve) => {
        timer = setTimeout(resolve, TIMEOUT_MS);
    });
    const seen = [];
    while (seen.length < count) {
        const notification = await Promise.race([queue.next(), late]);
        if (!notification) break;
        seen.push(notification);
    }
    clearTimeout(timer);
    return seen;
}

async function progress(adapter) {
    const queue = new NotificationQueue();
    const onprogress = ({ progress, total, message }) => queue.put([progress, total, message]);
    await adapter.call('test_tool_with_progress', {}, { onprogress });
    return collect(queue, 3);
}

async function cancellation(adapter) {
    const controller = new AbortController();
    const abandoned = adapter.call('wait_until_cancelled', {}, {
        signal: controller.signal,
        onprogress: () => controller.abort('No longer needed'),
    });
    const seen = await abandoned.then((result) => ({ result }), () => ({}));
    const count = await adapter.call('cancelled_count', { at_least: 1 });
    return { outcome: seen, count, afterwards: await adapter.call('test_simple_text', {}) };
}

async function changes(adapter) {
    const events = [];
    const stop = await adapter.subscribe(plan.watched);
    for (const trigger of plan.triggers) {
        await adapter.call(trigger, {});
        events.push(...(await collect(adapter.changes, 1)));
    }
    await stop();
    return { events, lists: await adapter.lists(), watched: await adapter.read(plan.watched) };
}

async function logs(adapter) {
    await adapter.call('test_logging_tool', {});
    await adapter.call('test_logging_tool', {}, {}, 'debug');
    return collect(adapter.logs, plan.logs);
}

export async function runScenario(adapter) {
    const seen = {
        connection: adapter.connection(),
        lists: await adapter.lists(),
        calls: await outcomes(plan.calls, ([name, args]) => adapter.call(name, args)),
        prompts: await outcomes(plan.prompts, ([name, args]) => adapter.prompt(name, args)),
        reads: await outcomes(plan.reads, (uri) => adapter.read(uri)),
        completions: await outcomes(plan.completions, ([ref, argument, context]) =>
            adapter.complete(ref, argument, context),
        ),
        input_requests: [...inputRequests],
        progress: await progress(adapter),
        cancellation: await cancellation(adapter),
        changes: await changes(adapter),
        logs: await logs(adapter),
    };
    await adapter.close();
    process.stdout.write(JSON.stringify(seen));
}

// The methods that both versions of the client share.
export class ClientAdapter {
    logs = new NotificationQueue();
    changes = new NotificationQueue();

    constructor(client) {
        this.client = client;
    }

    recordChange(method, { params }) {
        this.changes.put({ method, uri: params?.uri ?? null });
    }

    connection() {
        return {
            version: this.negotiatedVersion(),
            server: this.client.getServerVersion(),
            capabilities: this.client.getServerCapabilities(),
            instructions: this.client.getInstructions(),
        };
    }

    async lists() {
        return {
            tools: (await this.client.listTools()).tools,
            prompts: (await this.client.listPrompts()).prompts,
            resources: (await this.client.listResources()).resources,
            templates: (await this.client.listResourceTemplates()).resourceTemplates,
        };
    }

    prompt(name, args) {
        return this.client.getPrompt({ name, arguments: args });
    }

    read(uri) {
        return this.client.readResource({ uri });
    }

    complete(ref, argument, known) {
        return this.client.complete({ ref, argument, ...(known && { context: { arguments: known } }) });
    }

    close() {
        return disconnect(this.client);
    }
}
