// The prompts that both official TypeScript clients request from Dittybag; prints what they received as JSON.
//
// The plan has the same form as that of prompts_scenario.py.

import { disconnect, plan } from './interop_scenario.mjs';

// `open(fillIn)` returns a connected client. Without `fillIn`, it has no forms.
export async function requestPrompts(open) {
    const seen = {};
    for (const key of ['asked', 'unasked']) {
        const forms = [];
        const outcomes = [];
        let answer = {};
        const fillIn = ({ params }) => {
            forms.push(params);
            return answer;
        };
        const client = await open(key === 'asked' ? fillIn : undefined);
        for (const [name, args, given] of plan[key]) {
            answer = given;
            try {
                const { messages } = await client.getPrompt({ name, arguments: args });
                outcomes.push(messages.map((message) => [message.role, message.content.text]));
            } catch (error) {
                outcomes.push([error.code, error.message.replace(/^MCP error -\d+: /, '')]);
            }
        }
        await disconnect(client);
        seen[key] = { outcomes, forms };
    }
    console.log(JSON.stringify(seen));
}
