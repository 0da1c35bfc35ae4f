/** What makes each row of the table "When a session ends" happen, by the beginning of its cause. */
import { until } from '../../../support/poll.ts';
import type { Stack } from '../../../support/service/stack.ts';
import {
  begun,
  browsersOf,
  create,
  evaluate,
  HUNGRY,
  type Made,
  marked,
  release,
  type Session,
} from './tables.ts';

/**
 * `first`: nothing else starts meanwhile; `soon`: beside others; `alone`: it ends every session of
 * its service.
 */
export type When = 'first' | 'soon' | 'alone';
type Make = (stack: Stack) => Promise<Made>;

/** The times of the first and of the third row, and the memory of a browser. */
export const ENV = {
  TABERN_SESSION_GRACE_MS: '200',
  TABERN_SESSION_RETURN_MS: '400',
  TABERN_BROWSER_MEMORY_MB: '512',
  TABERN_LOG_LEVEL: 'debug',
};

const KEPT = { keepAlive: true };

export const SESSION_MAKERS: Readonly<Record<string, [When, Make]>> = {
  'the last client disconnected': [
    'soon',
    async (stack) => {
      const { session, client } = await begun(stack);
      client.close();
      return { session };
    },
  ],
  'a client sent `Browser.close`': [
    'soon',
    async (stack) => {
      const made = await begun(stack);
      made.client.send('{"id":1,"method":"Browser.close"}');
      return made;
    },
  ],
  'the last connection broke': [
    'soon',
    async (stack) => {
      const { session, client } = await begun(stack);
      client.terminate();
      return { session };
    },
  ],
  '`REQUEST_RELEASE`, or': [
    'soon',
    async (stack) => {
      const made = await begun(stack, KEPT);
      await stack.call(`/v1/sessions/${made.session.id}`, { method: 'DELETE' });
      return made;
    },
  ],
  'the browser crashed': ['first', crash],
  'the browser used more memory': [
    'soon',
    async (stack) => {
      const made = await begun(stack, KEPT);
      await evaluate(made.client, HUNGRY);
      return made;
    },
  ],
  'the browser did not start': [
    'first',
    (stack) =>
      withContext(stack, async (blobs, name) => {
        const { length } = await blobs.read(name);
        await blobs.write(name, Buffer.alloc(length, 'x'));
      }),
  ],
  'the stored content of its context': [
    'first',
    (stack) => withContext(stack, (blobs, name) => blobs.remove(name)),
  ],
  'the runner was killed': [
    'alone',
    async (stack) => {
      const made = await begun(stack, KEPT);
      process.kill(await stack.runnerPid(made.session.id), 'SIGKILL');
      return made;
    },
  ],
  'the service was stopped': [
    'alone',
    async (stack) => {
      const made = await begun(stack, KEPT);
      await stack.kill('SIGTERM');
      await stack.restart();
      return made;
    },
  ],
};

async function crash(stack: Stack): Promise<Made> {
  const before = new Set(browsersOf(stack));
  const made = await begun(stack, KEPT);
  for (const pid of browsersOf(stack)) if (!before.has(pid)) process.kill(pid, 'SIGKILL');
  return made;
}

type Damage = (blobs: Blobs, name: string) => Promise<void>;

/** A session with a context whose stored content was damaged. */
async function withContext(stack: Stack, damage: Damage): Promise<Made> {
  const { blobs } = stack.stored;
  const { id } = await stack.call<Session>('/v1/contexts', { json: {} });
  const context = { id, persist: true };
  const browserSettings = { context, recordSession: false, logSession: false };
  const before = await blobs.names();
  const first = await begun(stack, { ...KEPT, browserSettings });
  await release(stack, first.session);
  await until(() => isSaved(stack, id));
  for (const name of await newBlobs(blobs, before)) await damage(blobs, name);
  const userMetadata = { mark: id };
  await create(stack, { browserSettings, userMetadata }).catch(() => undefined); // it has failed
  return { session: await marked(stack, id) };
}

async function isSaved(stack: Stack, id: string): Promise<boolean> {
  return (await stack.fetch(`/v1/contexts/${id}/download`)).ok;
}

type Blobs = Stack['stored']['blobs'];

/** The names that were not there before; waits for one. */
export function newBlobs(blobs: Blobs, before: readonly string[]): Promise<string[]> {
  return until(async () => {
    const names = (await blobs.names()).filter((name) => !before.includes(name));
    return names.length > 0 && names;
  });
}
