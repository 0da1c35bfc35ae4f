/**
 * Every flood and bomb of the attacks, and what keeps a process of the service busy, on the whole
 * service: a second tenant's round trips stay below a second, and its session stays RUNNING.
 */
import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { setTimeout as pause } from 'node:timers/promises';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { WebSocket } from 'ws';
import { type Attack, PRELUDE } from '../runner/attacks/attack.ts';
import { floods } from '../runner/attacks/table/floods.ts';
import type { headOfLine } from '../runner/attacks/table/head-of-line.ts';
import { memory } from '../runner/attacks/table/memory.ts';
import { ended, type Invocation, invoke, isOver, publish } from '../support/functions.ts';
import { until } from '../support/poll.ts';
import { openSecondTenant, type SecondTenant, slowness } from '../support/second-tenant.ts';
import { boot, type Stack } from '../support/stack.ts';

const test = suite('faults/head-of-line');
const MANIFEST = '{"name":"attack","version":"1.0.0","private":true,"type":"module"}';
/** An attack that does not end by itself is cancelled then. */
const ATTACK_MS = 4_000;
const MESSAGE_BYTES = 14_000_000;
/** For what an attack left under way. */
const SOME_ROUNDS_MS = 500;
/** Of an invocation's handler: nothing listens there. */
const PARAMS = { port: 1, udpPort: 1, pid: 1 };

type Name = (typeof headOfLine)[number]['name'];
type Act = (stack: Stack, check: (name: string) => Promise<void>) => Promise<void>;

const ACTS: Readonly<Record<Name, Act>> = {
  'every flood above, beside a session of another project': (...given) => runAll(floods, ...given),
  'every bomb above, beside a session of another project': (...given) => runAll(memory, ...given),
  'a CDP command of 14 MB with a million members': (stack) =>
    send(stack, [
      filled('{"id":1,"method":"Runtime.evaluate","params":{', (at) => `"k${at}":1`, '}}'),
    ]),
  'a CDP command of 14 MB that is nested, and no JSON': (stack) =>
    send(stack, [`{"id":1,"method":"A.a","params":${'['.repeat(MESSAGE_BYTES)}`]),
  'a flood of 100,000 CDP commands whose answers are not read': (stack) =>
    send(
      stack,
      Array.from({ length: 100_000 }, (_, id) => `{"id":${id},"method":"Browser.getVersion"}`),
    ),
  'a result of 5 MiB of small members, read ten times': async (stack) => {
    const body = 'return Array(1_700_000).fill({});';
    const { large = '' } = await publish(stack, project([['large', body]]));
    const { id } = await invoke(stack, large);
    assert.is((await ended(stack, id)).status, 'COMPLETED');
    for (let i = 0; i < 10; i++) {
      const answer = await stack.fetch(`/v1/functions/invocations/${id}`);
      await answer.arrayBuffer(); // a refusal is as good: it is the others who are judged
    }
  },
  'a build whose package.json has 24 MiB of members': async (stack) => {
    // of the size that an archive may have: it hardly compresses
    const unit = () => `"${randomBytes(12).toString('base64')}":{}`;
    const manifest = filled('{"name":"attack","x":{', unit, '}}', 24 << 20);
    await publish(stack, { 'package.json': manifest, 'index.ts': '' }).catch(isBuildFailure);
  },
  'proxies whose patterns count to a thousand, again and again': async (stack) => {
    const domainPattern = 'a{1000}'.repeat(290);
    const proxies = Array.from({ length: 20 }, () => {
      return { type: 'external', server: 'http://127.0.0.1:9', domainPattern };
    });
    const answer = await stack.fetch('/v1/sessions', { json: { proxies } });
    assert.is(answer.status, 400);
  },
};

for (const [name, act] of Object.entries(ACTS)) {
  test(`nobody else notices ${name}`, async () => {
    await using stack = await boot({ isDirect: true });
    await using tenant = await openSecondTenant(stack);
    await until(async () => (await tenant.report()).rounds > 5);
    const slow: string[] = [];
    await act(stack, (one) => check(tenant, one, slow));
    await check(tenant, name, slow);
    assert.equal(slow, []);
    assert.not.match(stack.logs(), /lease is lost|work was lost|the runner ended/);
  });
}

test.run();

async function check(tenant: SecondTenant, name: string, slow: string[]): Promise<void> {
  await pause(SOME_ROUNDS_MS);
  const found = slowness(await tenant.report());
  if (found !== undefined) slow.push(`${name}: ${found}`);
}

/** One invocation each; what does not end is cancelled. */
async function runAll(
  attacks: readonly Attack[],
  stack: Stack,
  check: (name: string) => Promise<void>,
): Promise<void> {
  const bodies = attacks.flatMap(({ body }, index): [string, string][] =>
    body === undefined ? [] : [[`a${index}`, body]],
  );
  const ids = await publish(stack, project(bodies));
  for (const [index, { name, body, source }] of attacks.entries()) {
    if (body !== undefined) {
      const { id } = await invoke(stack, String(ids[`a${index}`]), PARAMS);
      await overOrCancelled(stack, id);
    } else if (source !== undefined) {
      const files = { 'package.json': MANIFEST, 'index.ts': source };
      await publish(stack, files).catch(isBuildFailure);
    }
    await check(name);
  }
}

async function overOrCancelled(stack: Stack, id: string): Promise<void> {
  const isEnded = async () => {
    const one = await stack.call<Invocation>(`/v1/functions/invocations/${id}`);
    return isOver(one.status);
  };
  await until(isEnded, ATTACK_MS).catch(async () => {
    await stack.fetch(`/v1/functions/invocations/${id}/cancel`, { method: 'POST' });
    await until(isEnded);
  });
}

/** Sends them to a session of the attacker, and reads nothing. */
async function send(stack: Stack, messages: readonly string[]): Promise<void> {
  const { connectUrl } = await stack.call<{ connectUrl: string }>('/v1/sessions', { json: {} });
  const client = new WebSocket(connectUrl);
  await once(client, 'open');
  client.on('error', () => {});
  client.pause();
  for (const message of messages) client.send(message, () => {});
  const isSent = () => client.bufferedAmount === 0 || client.readyState !== WebSocket.OPEN;
  await until(isSent, 2 * ATTACK_MS).catch(() => {}); // who does not read is not read either
  await pause(ATTACK_MS); // what is under way at the service
  client.terminate();
}

function project(bodies: readonly [name: string, body: string][]): Record<string, string> {
  const handlers = bodies.map(
    ([name, body]) => `defineFn('${name}', async (ctx, params) => { ${body} });`,
  );
  const source = `import { defineFn } from 'tabern';\n${PRELUDE}\n${handlers.join('\n')}\n`;
  return { 'package.json': MANIFEST, 'index.ts': `// @ts-nocheck\n${source}` };
}

function filled(
  head: string,
  unit: (index: number) => string,
  tail: string,
  size = MESSAGE_BYTES,
): string {
  const units: string[] = [];
  let bytes = head.length + tail.length;
  for (let at = 0; bytes < size; at += 1) {
    const text = unit(at);
    units.push(text);
    bytes += text.length + 1;
  }
  units.pop();
  return head + units.join(',') + tail;
}

function isBuildFailure(error: Error): void {
  if (!error.message.startsWith('the build failed')) throw error;
}
