// What the official TypeScript clients read of the skills of a server, checked as hosts check it.

import { createHash } from 'node:crypto';
import { disconnect, load } from './interop_scenario.mjs';

const { z } = load('zod');
const anyResult = z.looseObject({});

export async function readSkills(client) {
    const send = (method, params) => client.request({ method, params }, anyResult);
    const entries = [];
    let cursor;
    do {
        const page = await send('skills/list', cursor ? { cursor } : {});
        entries.push(...page.skills);
        cursor = page.nextCursor;
    } while (cursor);
    const files = {};
    const folders = {};
    for (const entry of entries) {
        const { skill } = await send('skills/get', { uri: entry.uri });
        if (JSON.stringify(skill) !== JSON.stringify(entry)) throw new Error(`another entry: ${entry.uri}`);
        for (const file of entry.resources) {
            const { contents } = await client.readResource({ uri: file.uri });
            const content = Buffer.from(contents[0].text ?? contents[0].blob, contents[0].text === undefined ? 'base64' : 'utf8');
            const digest = `sha256:${createHash('sha256').update(content).digest('hex')}`;
            if (content.length !== file.size || digest !== file.digest) throw new Error(`other content: ${file.uri}`);
            files[file.uri] = digest;
        }
        const root = entry.uri.slice(0, -'/SKILL.md'.length);
        folders[root] = (await send('resources/directory/read', { uri: root })).resources.map((child) => child.uri);
    }
    const extensions = client.getServerCapabilities()?.extensions ?? null;
    await disconnect(client);
    console.log(JSON.stringify({ extensions, entries, files, folders }));
}
