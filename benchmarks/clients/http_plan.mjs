// What the Node load programs share: the plan in their first argument, and the load itself.

export const plan = JSON.parse(process.argv[2]);

export const note = (number) => 'x'.repeat(plan.vary ? (number * 7919) % 300 : 100);

export async function runLoad(call) {
  let next = 0;
  const work = async () => {
    while (next < plan.count) await call(next++);
  };
  await Promise.all(Array.from({ length: plan.connections }, work));
}
