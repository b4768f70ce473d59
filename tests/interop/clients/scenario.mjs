// What every TypeScript client does with the fixture, and what it saw, as one JSON document.
//
// The plan comes as the first argument. A client of its own version fits in through a peer: an object with
// `connection`, `lists`, `call`, `prompt`, `read`, `complete`, `watch` and `close`.

import { createRequire } from 'node:module';
import { join } from 'node:path';

const PATIENCE_MS = 10_000;

export const plan = JSON.parse(process.argv[2]);

// The packages live in an environment of their own, not beside this file.
export const load = createRequire(join(plan.home, 'package.json'));

// A way to the server, which has an address or a command.
export function transport(Stdio, Http) {
    return plan.server.url ? new Http(new URL(plan.server.url)) : new Stdio(plan.server);
}

// Over HTTP a session outlives its client, unless it is ended.
export async function leave(client) {
    await client.transport.terminateSession?.();
    await client.close();
}

// Notifications that arrived, to be waited for.
export class Heard {
    #notifications = [];
    #waiting = [];

    note(notification) {
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

// The client's user, model and roots.
export const asked = [];
export const answers = {
    'elicitation/create': ({ params }) => {
        asked.push({ method: 'elicitation/create', params });
        const fields = Object.keys(params.requestedSchema.properties);
        const given = Object.entries(plan.form).filter(([name]) => fields.includes(name));
        return { action: 'accept', content: Object.fromEntries(given) };
    },
    'sampling/createMessage': ({ params }) => {
        asked.push({ method: 'sampling/createMessage', params });
        const content = { type: 'text', text: plan.sample };
        return { role: 'assistant', content, model: 'test-model', stopReason: 'endTurn' };
    },
    'roots/list': () => {
        asked.push({ method: 'roots/list' });
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

// What arrives in time: a test sees what is missing.
async function collect(heard, count) {
    let timer;
    const late = new Promise((resolve) => {
        timer = setTimeout(resolve, PATIENCE_MS);
    });
    const seen = [];
    while (seen.length < count) {
        const notification = await Promise.race([heard.next(), late]);
        if (!notification) break;
        seen.push(notification);
    }
    clearTimeout(timer);
    return seen;
}

async function progress(peer) {
    const heard = new Heard();
    const onprogress = ({ progress, total, message }) => heard.note([progress, total, message]);
    await peer.call('test_tool_with_progress', {}, { onprogress });
    return collect(heard, 3);
}

async function cancellation(peer) {
    const controller = new AbortController();
    const abandoned = peer.call('wait_until_cancelled', {}, {
        signal: controller.signal,
        onprogress: () => controller.abort('Not wanted any more'),
    });
    const seen = await abandoned.then((result) => ({ result }), () => ({}));
    const count = await peer.call('cancelled_count', { at_least: 1 });
    return { outcome: seen, count, afterwards: await peer.call('test_simple_text', {}) };
}

async function changes(peer) {
    const events = [];
    const stop = await peer.watch(plan.watched);
    for (const trigger of plan.triggers) {
        await peer.call(trigger, {});
        events.push(...(await collect(peer.changes, 1)));
    }
    await stop();
    return { events, lists: await peer.lists(), watched: await peer.read(plan.watched) };
}

async function logs(peer) {
    await peer.call('test_logging_tool', {});
    await peer.call('test_logging_tool', {}, {}, 'debug');
    return collect(peer.logs, plan.logs);
}

export async function observe(peer) {
    const seen = {
        connection: peer.connection(),
        lists: await peer.lists(),
        calls: await outcomes(plan.calls, ([name, args]) => peer.call(name, args)),
        prompts: await outcomes(plan.prompts, ([name, args]) => peer.prompt(name, args)),
        reads: await outcomes(plan.reads, (uri) => peer.read(uri)),
        completions: await outcomes(plan.completions, ([ref, argument, context]) =>
            peer.complete(ref, argument, context),
        ),
        asked: [...asked],
        progress: await progress(peer),
        cancellation: await cancellation(peer),
        changes: await changes(peer),
        logs: await logs(peer),
    };
    await peer.close();
    process.stdout.write(JSON.stringify(seen));
}

// What the two versions of the client have in common.
export class Peer {
    logs = new Heard();
    changes = new Heard();

    constructor(client) {
        this.client = client;
    }

    noteChange(method, { params }) {
        this.changes.note({ method, uri: params?.uri ?? null });
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
        return leave(this.client);
    }
}
