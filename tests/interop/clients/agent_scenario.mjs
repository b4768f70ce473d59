// The calls that both official TypeScript clients make to Dittybag; prints what they received as JSON.
//
// The plan has the same form as that of agent_scenario.py.

import { disconnect, plan } from './interop_scenario.mjs';

let answer;
const forms = [];

// The user's answer to a form of the server.
export function fillIn({ params }) {
    forms.push(params);
    return answer;
}

// The URIs of the client's roots, if the plan has any.
export const capabilities = { elicitation: {}, ...(plan.roots ? { roots: {} } : {}) };
export const listRoots = () => ({ roots: plan.roots.map((uri) => ({ uri })) });

// In strict mode, Ajv refuses schemas with unknown keywords or keywords that have no effect.
export async function callTools(client, Ajv) {
    const ajv = new Ajv({ strict: true, strictRequired: true, allErrors: true });
    const { tools } = await client.listTools();
    const validators = (member) =>
        Object.fromEntries(tools.filter((tool) => tool[member]).map((tool) => [tool.name, ajv.compile(tool[member])]));
    const inputs = validators('inputSchema');
    const outputs = validators('outputSchema');
    const violations = (validate, value) => (validate(value) ? [] : [ajv.errorsText(validate.errors)]);
    const calls = [];
    let last = '';
    for (const [name, template, given] of plan.calls) {
        answer = given;
        const args = JSON.parse(JSON.stringify(template).replaceAll('$ID', last));
        const result = await client.callTool({ name, arguments: args });
        const structured = result.structuredContent;
        last = String(structured?.id ?? last);
        calls.push({
            result,
            input: violations(inputs[name], args),
            output: structured === undefined ? [] : violations(outputs[name], structured),
        });
    }
    await disconnect(client);
    console.log(JSON.stringify({ tools, calls, forms }));
}
