// The calls that both official TypeScript clients make to Dittybag.

import { disconnect } from './interop_scenario.mjs';

export async function callEveryTool(client, plan) {
    // After this call, the SDK checks every structured result against the tool's output schema.
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
    await disconnect(client);
    console.log(JSON.stringify([...seen, prompt.messages[0].content.text]));
}
