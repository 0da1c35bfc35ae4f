/**
 * `tabern upgrade`: newer programs take over from the running service under load. No session and no
 * accepted invocation is lost.
 */
import { setTimeout as pause } from 'node:timers/promises';
import { suite } from 'uvu';
import { equal, is, match, ok } from 'uvu/assert';
import { brokenPromises } from '../../../faults/history.ts';
import { startLoad } from '../../../faults/load.ts';
import { ended, publish } from '../../../support/clients/functions.ts';
import { until } from '../../../support/poll.ts';
import { startReceiver } from '../../../support/servers/receiver.ts';
import { isRunning } from '../../../support/service/processes.ts';
import { boot, type Stack } from '../../../support/service/stack.ts';
import { sized } from '../../../support/whole.ts';
import { copyProgram } from './program-copy.ts';
import {
  read,
  release,
  running,
  type Session,
  startTypist,
  type Typist,
  UPGRADE_LIMIT_MS,
  upgradeTo,
} from './upgrading.ts';

const journey = suite('journey/operations/upgrade/load');
const UPGRADES = Number(process.env['TABERN_TEST_UPGRADES'] ?? sized(1, 4));
const TYPISTS = 2;
const ENDS = ['functions.invocations.completed', 'functions.invocations.failed'];

/** Creates sessions one after another, as a client does that retries as it is told. */
function startCreator(stack: Stack) {
  const created: string[] = [];
  const refused: string[] = [];
  let refusedMs = 0;
  let longestMs = 0;
  let isOver = false;
  const create = async (): Promise<void> => {
    const startedAt = performance.now();
    const answer = await stack
      .fetch('/v1/sessions', { json: { keepAlive: true } })
      .catch((error: Error) => error);
    const ms = performance.now() - startedAt;
    longestMs = Math.max(longestMs, ms);
    if (!(answer instanceof Error) && answer.ok) {
      created.push(((await answer.json()) as Session).id);
      return;
    }
    refusedMs += ms;
    if (answer instanceof Error) refused.push(String(answer.cause ?? answer));
    else {
      refused.push(`${answer.status}, Retry-After: ${answer.headers.get('retry-after')}`);
      await answer.body?.cancel();
    }
    await pause(50);
  };
  const creating = (async () => {
    while (!isOver) {
      await create();
      const last = created.at(-1);
      if (last !== undefined) await release(stack, last).catch(() => undefined); // again below
    }
  })();
  return {
    created,
    refused,
    times: () => ({ refusedMs: Math.round(refusedMs), longestMs: Math.round(longestMs) }),
    async [Symbol.asyncDispose]() {
      isOver = true;
      await creating;
    },
  };
}

journey(`${UPGRADES} upgrades under load lose no session and no invocation`, async () => {
  await using program = copyProgram();
  await using receiver = await startReceiver();
  const env = { TABERN_SESSIONS_MAX: '8' };
  await using stack = await boot({ webhookCa: receiver.caPath, env });
  await stack.call('/v1/webhooks', {
    json: { endpoint: receiver.url, eventTypes: ENDS },
  });
  const { trivial = '' } = await publish(stack);
  const typists: Typist[] = [];
  await using clients = new AsyncDisposableStack();
  while (typists.length < TYPISTS) typists.push(clients.use(await startTypist(stack)));
  await using load = startLoad(stack, trivial, 1);
  await using creator = startCreator(stack);
  const { pid } = stack;
  const oldRunner = await stack.runnerPid();
  for (let round = 1; round <= UPGRADES; round += 1) {
    const [before, accepted] = [creator.created.length, load.acknowledged.length];
    const keys = typists.map(({ typed }) => typed().length);
    await upgradeTo(stack, program, `9.0.${round}`);
    is(stack.pid, pid, 'a supervisor sees the same process');
    await until(() => creator.created.length > before && load.acknowledged.length > accepted);
    await until(() => typists.every(({ typed }, at) => typed().length > (keys[at] ?? 0)));
    ok(isRunning(oldRunner), 'it keeps the first sessions');
  }
  await until(async () => (await stack.fetch('/readyz')).ok);
  await creator[Symbol.asyncDispose]();
  await load.stop();
  for (const { id } of typists) is((await read(stack, id)).status, 'RUNNING');
  await Promise.all(typists.map((typist) => typist.stop()));
  await until(() => !isRunning(oldRunner), UPGRADE_LIMIT_MS);
  // of each older program only the first process is left
  await until(() => running(program, 'serve').length === 1, UPGRADE_LIMIT_MS);
  is(running(program, 'runner').length, 1);
  for (const id of creator.created) {
    await release(stack, id).catch(() => undefined);
    await until(async () => (await read(stack, id)).status === 'COMPLETED', UPGRADE_LIMIT_MS);
  }
  for (const id of load.acknowledged) is((await ended(stack, id)).status, 'COMPLETED', id);
  const keys = typists.map(({ typed }) => typed().length);
  console.log({ upgrades: UPGRADES, created: creator.created.length, keys, ...creator.times() });
  console.log({ invocations: load.acknowledged.length, failures: load.failures });
  console.log({ refused: creator.refused });
  for (const line of creator.refused) match(line, /^503, Retry-After: \d|ECONNRE|socket/i);
  await stack.kill('SIGTERM');
  equal(brokenPromises(stack.dataDir, load.acknowledged), []);
});

journey.run();
