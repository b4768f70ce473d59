// What the Node client programs share: the requests on standard input, the responses, and the load.

import { createRequire } from 'node:module';
import { createInterface } from 'node:readline';

// The packages are in a separate environment, not next to this file.
export const load = process.argv[2] ? createRequire(`${process.argv[2]}/package.json`) : undefined;

const seconds = () => performance.now() / 1000;
const reply = (response) => process.stdout.write(JSON.stringify(response) + '\n');

function checkedCalls(plan) {
  let next = 0;
  return async (call) => {
    const planned = plan.calls[next++ % plan.calls.length];
    const text = await call(planned);
    if (!text.includes(planned[1])) throw new Error(`${planned}: ${text.slice(0, 500)}`);
  };
}

// Makes as many calls at a time as the load says.
async function runLoad(plan, makeCall, call) {
  const latencies = [];
  const started = seconds();
  const busy = process.cpuUsage();
  const end = started + plan.seconds;
  let most = plan.most ?? Infinity;
  const work = async () => {
    while (seconds() < end && most-- > 0) {
      const sent = seconds();
      await makeCall(call);
      latencies.push(seconds() - sent);
    }
  };
  await Promise.all(Array.from({ length: plan.at_a_time }, work));
  const took = seconds() - started;
  const { user, system } = process.cpuUsage(busy);
  latencies.sort((a, b) => a - b);
  const at = (share) => latencies[Math.floor(share * (latencies.length - 1))];
  const client_cpu = (user + system) / 1e6;
  return { calls: latencies.length, seconds: took, client_cpu, median: at(0.5), p99: at(0.99) };
}

// `connect(plan)` returns the functions `listTools`, `call` and `close` of a connection.
export async function serve(connect) {
  let connection;
  let makeCall;
  for await (const line of createInterface({ input: process.stdin })) {
    const request = JSON.parse(line);
    if (request.do === 'open') {
      const started = seconds();
      connection = await connect(request);
      const connected = seconds();
      await connection.listTools();
      makeCall = checkedCalls(request);
      reply({ initialize: connected - started, tools: seconds() - started });
    } else if (request.do === 'load') {
      reply(await runLoad(request, makeCall, connection.call));
    } else {
      await connection.close();
      reply({});
    }
  }
}

// A connection of an official client.
export async function connectClient(client, plan, Stdio, Http) {
  const [command, ...args] = plan.command ?? [];
  const transport = plan.url
    ? new Http(new URL(plan.url))
    : new Stdio({ command, args, env: plan.env, stderr: 'ignore' });
  await client.connect(transport);
  return {
    listTools: () => client.listTools(),
    call: async ([args, , note]) => {
      const _meta = note ? { _meta: { note } } : {};
      return (await client.callTool({ name: plan.tool, arguments: args, ..._meta })).content[0].text;
    },
    close: () => client.close(),
  };
}
