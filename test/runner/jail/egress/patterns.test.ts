/** Tenants' patterns are matched in a thread of their own. */
import { once } from 'node:events';
import { type AddressInfo, connect, createServer } from 'node:net';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import type { Log } from '../../../../proto/common/log.ts';
import { cidrList } from '../../../../proto/network/public-addresses.ts';
import { openEgress } from '../../../../runner/jail/egress/egress-proxy.ts';
import { openPatterns } from '../../../../runner/jail/egress/patterns.ts';
import { until } from '../../../support/poll.ts';

const patterns = suite('runner/jail/egress/patterns');

/** Accepted, and slow: most of its program is walked for each character of a host. */
const SLOW = '(a|a?){0,280}x';
const hostOf = (n: number) => `${'a'.repeat(240)}${n}.test`;

patterns('a pattern is found anywhere in a host, in any case', async () => {
  const of = openPatterns().ofSession();
  assert.is(await of('SHOP\\.').find('my.shop.test'), true);
  assert.is(await of('^shop').find('my.shop.test'), false);
});

patterns('a flood of slow matches delays neither this thread nor other sessions', async () => {
  const { ofSession } = openPatterns();
  const [slow, plain] = [ofSession()(SLOW), ofSession()('^good')];
  assert.is(await plain.find('good.test'), true); // the thread runs
  const before = process.threadCpuUsage();
  const flood = Array.from({ length: 50 }, (_, n) => slow.find(hostOf(n)));
  let [isOver, done] = [false, 0];
  for (const one of flood) void Promise.resolve(one).then(() => (done += 1));
  const all = Promise.all(flood).then(() => (isOver = true));
  assert.is(await plain.find('good.example'), true);
  assert.is(isOver, false, 'the other session had its turn within the flood');
  assert.ok(done <= 3, `${done} of the flood went first`);
  assert.ok((await Promise.all(flood)).every((isFound) => isFound === false));
  await all;
  const { user, system } = process.threadCpuUsage(before);
  assert.ok(user + system < 200_000, `${user + system} us of this thread`);
});

patterns('results are cached by host', async () => {
  const pattern = openPatterns().ofSession()(SLOW);
  await pattern.find(hostOf(0));
  const startedAt = performance.now();
  for (let n = 0; n < 1_000; n += 1) await pattern.find(hostOf(0));
  assert.ok(performance.now() - startedAt < 2_000, 'a thousand questions, one match');
});

patterns('a match that uses too much CPU time fails, and the next one succeeds', async () => {
  // the hostile question takes 300 ms of CPU time, the other one 5 ms
  const { ofSession } = openPatterns({ questionMaxMs: 60 });
  const hostile = ofSession()(SLOW);
  const said = await Promise.resolve(hostile.find(hostOf(1).padStart(8_000, 'a'))).catch(String);
  assert.match(String(said), /too much CPU time/);
  assert.is(await ofSession()('a').find('a.test'), true);
});

patterns('a slow pattern ends its connection with a warning', async () => {
  const logged: [string, string][] = [];
  const levels = ['info', 'warn', 'error'].map((level) => {
    return [level, (_: object, message: string) => logged.push([level, message])];
  });
  const pattern = openPatterns({ questionMaxMs: 1 }).ofSession()(SLOW);
  const egress = openEgress({
    allow: cidrList([]),
    log: Object.fromEntries(levels) as Log,
    resolve: async () => [],
  });
  egress.steer({ routes: [{ pattern }] });
  const server = createServer(egress.handle).listen(0, '127.0.0.1');
  await once(server, 'listening');
  const client = connect((server.address() as AddressInfo).port, '127.0.0.1');
  client.on('error', () => undefined).write(`CONNECT ${hostOf(2)}:443 HTTP/1.1\r\n\r\n`);
  client.resume();
  await once(client, 'close');
  await until(() => logged.length > 0);
  assert.equal(logged, [['warn', 'a domainPattern of a session took too much CPU time']]);
  server.close();
});

patterns.run();
