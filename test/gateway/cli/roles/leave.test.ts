/** A gateway that drains serves until load balancers had time to see that it is not ready. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { until } from '../../../support/poll.ts';
import { freePort } from '../../../support/port.ts';
import { startCore, tabern } from '../../../support/service/command.ts';
import { tempDirectory } from '../../../support/temp.ts';

const test = suite('gateway/cli/roles/leave');
/** In milliseconds: three checks of a load balancer that checks every 3 s. */
const SEEN_MS = 9_000;

async function open(drainS: number) {
  await using cleanup = new AsyncDisposableStack();
  const data = join(cleanup.use(tempDirectory()).path, 'data');
  cleanup.use(await startCore({ TABERN_DATA: data }));
  const port = await freePort();
  const gateway = tabern(['gateway'], {
    TABERN_DATA: `${data}-gateway`,
    TABERN_CORE: `unix:${data}/core.sock`,
    TABERN_GATEWAY_TOKEN: readFileSync(join(data, 'keys/gateway.token'), 'utf8').trim(),
    TABERN_PORT: String(port),
    TABERN_DRAIN_S: String(drainS),
  });
  cleanup.defer(async () => {
    gateway.child.kill('SIGKILL');
    await gateway.ended;
  });
  const fetched = (path: string) =>
    fetch(`http://127.0.0.1:${port}${path}`).then(
      async (answer) => `${answer.status} ${await answer.text()}`,
      () => 'refused',
    );
  await until(async () => (await fetched('/healthz')).startsWith('200'));
  const kept = cleanup.move();
  return { gateway, fetched, [Symbol.asyncDispose]: () => kept.disposeAsync() };
}

test('without a connection it serves for some seconds after it is not ready', async () => {
  await using app = await open(600);
  const { child, ended } = app.gateway;
  const startedAt = performance.now();
  child.kill('SIGTERM');
  await until(async () => /^503 .*the service drains/.test(await app.fetched('/readyz')));
  assert.match(await app.fetched('/v1/sessions'), /^401/, 'requests are answered as before');
  assert.match(await app.fetched('/healthz'), /^200/);
  const { code } = await ended;
  assert.is(code, 0);
  assert.ok(performance.now() - startedAt >= SEEN_MS);
});

test('a second signal, or no time to drain, ends it', async () => {
  await using slow = await open(600);
  slow.gateway.child.kill('SIGTERM');
  await until(async () => (await slow.fetched('/readyz')).startsWith('503'));
  const again = setInterval(() => slow.gateway.child.kill('SIGTERM'), 700);
  const { code } = await slow.gateway.ended;
  clearInterval(again);
  assert.ok(code === 0 || code === 1, `${code}: a third signal exits with 1`);
  await using fast = await open(0);
  fast.gateway.child.kill('SIGTERM');
  assert.is((await fast.gateway.ended).code, 0);
});

test.run();
