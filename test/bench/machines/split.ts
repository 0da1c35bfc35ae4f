/**
 * `node test/bench/machines/split.ts [runs]`: the time from the creation of a session until its
 * first CDP answer through roles apart (support/service/apart/split.ts: two cores with mTLS on
 * PostgreSQL and a bucket, two gateways, three runners with TLS, and a front before cores and
 * gateways), beside `tabern serve` in the same run. Read the ratio; the bar is 2x.
 */
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import { WebSocket } from 'ws';
import { until } from '../../support/poll.ts';
import { boot, type Stack } from '../../support/service/stack.ts';
import { show } from '../support/figures.ts';
import { settled } from '../support/settled.ts';

const RUNS = Number(process.argv[2] ?? 15);
/** Until the service's own code is compiled, in both runners. */
const WARM_UP_RUNS = 20;
const SPLIT = fileURLToPath(new URL('../../support/service/apart/split.ts', import.meta.url));
const OPTIONS = {
  env: {
    TABERN_SESSION_GRACE_MS: '0',
    TABERN_SESSION_RETURN_MS: '0',
    TABERN_SESSION_SPARES: '2',
  },
  isDirect: true,
} as const;

await using serve = await boot(OPTIONS);
await using split = await boot({ ...OPTIONS, command: [process.execPath, SPLIT] });
for (const stack of [serve, split]) {
  await settled(stack.pid);
  for (let run = 0; run < WARM_UP_RUNS; run += 1) await firstAnswer(stack);
}
const [plain, took]: [number[], number[]] = [[], []];
for (let run = 0; run < RUNS; run += 1) {
  plain.push(await rested(serve));
  took.push(await rested(split));
}
show('create -> first answer, serve', plain);
show('create -> first answer, roles apart', took, plain);

/** Both have replaced their spares: the start of one's Chrome takes a processor from the other. */
async function rested(stack: Stack): Promise<number> {
  for (const { pid } of [serve, split]) await settled(pid);
  return await firstAnswer(stack);
}

async function firstAnswer(stack: Stack): Promise<number> {
  const before = performance.now();
  const session = await stack.call<{ id: string; connectUrl: string }>('/v1/sessions', {
    json: {},
  });
  const client = new WebSocket(session.connectUrl, { perMessageDeflate: false });
  await once(client, 'open');
  client.send('{"id":1,"method":"Browser.getVersion"}');
  await once(client, 'message');
  const lasted = performance.now() - before;
  client.terminate();
  await until(async () => {
    const { status } = await stack.call<{ status: string }>(`/v1/sessions/${session.id}`);
    return status === 'COMPLETED';
  });
  return lasted;
}
