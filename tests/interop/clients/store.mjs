// What both official TypeScript clients do with Dittybag.

import { leave } from './scenario.mjs';

export async function visit(client, plan) {
    // From here on they check every structured answer against the tool's output schema.
    await client.listTools();
    const seen = [];
    let last = '';
    for (const [name, given] of plan.calls) {
        const args = JSON.parse(JSON.stringify(given).replaceAll('$ID', last));
        const result = await client.callTool({ name, arguments: args });
        seen.push([name, result.isError, result.structuredContent ?? null]);
        last = String(result.structuredContent?.id ?? last);
    }
    const prompt = await client.getPrompt({ name: 'greet', arguments: { who: 'Ann' } });
    await leave(client);
    console.log(JSON.stringify([...seen, prompt.messages[0].content.text]));
}
