/**
 * Rows of the table "When a session ends" that need a minute, or a service of their own, and what
 * makes them happen.
 */
import { existsSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { ok } from 'uvu/assert';
import { must } from '../../../../proto/common/must.ts';
import { until } from '../../../support/poll.ts';
import { type BootOptions, boot, type Stack } from '../../../support/service/stack.ts';
import { tempDirectory } from '../../../support/temp.ts';
import { ENV } from './session-makers.ts';
import {
  ask,
  begun,
  browsersOf,
  create,
  type Made,
  marked,
  POLL_MS,
  release,
  type Session,
} from './tables.ts';

/** Checks the row whose cause begins so. */
type Check = (name: string, stack: Stack, made: Made) => Promise<void>;
/**
 * Makes its rows happen in a service of its own. `seldom`: it takes minutes, and happens in a whole
 * run.
 */
export type Scene = { rows: readonly string[]; seldom?: true; play(check: Check): Promise<void> };

const PRELOAD = fileURLToPath(
  new URL('../../../support/service/stall-preload.ts', import.meta.url),
);
const QUIET = { keepAlive: true, browserSettings: { recordSession: false } };
const FOR_GOOD_MS = 3_600_000;
/** More than the two minutes that core waits for the end of a session. */
const GIVEN_UP_MS = 600_000;
/** Of a session without a browser: core/sessions/sessions.ts. */
const QUEUE_WAIT_MS = 60_000;

const ROW = {
  timeout: 'its `timeout` passed (',
  noPlace: 'no runner had a place',
  releasedEarly: 'it was released before',
  silent: 'its runner did not report',
  drain: 'the time of a drain',
  late: 'its browser was not ready',
  blocked: 'the runner was blocked',
  unvisited: 'no client and no viewer',
  handoff: 'a handoff ended',
  timedOutLong: 'its `timeout` passed, and its runner',
} as const;

export const SCENES: readonly Scene[] = [
  { rows: [ROW.timeout, ROW.noPlace, ROW.releasedEarly], play: withoutPlace },
  { rows: [ROW.silent, ROW.drain], play: withoutRunner },
  { rows: [ROW.late], seldom: true, play: late },
  { rows: [ROW.blocked], seldom: true, play: blocked },
  { rows: [ROW.unvisited, ROW.handoff], seldom: true, play: unvisited },
  { rows: [ROW.timedOutLong], seldom: true, play: stopped },
];

let starting: Promise<unknown> = Promise.resolve();

/** Services start one after another: a small machine would not get several ready in time. */
export function bootInTurn(options: BootOptions): Promise<Stack> {
  const booted = starting.then(() => boot(options));
  starting = booted.catch(() => undefined);
  return booted;
}

/** A service without a free place: its only one, or that of each runner, is taken. */
async function full() {
  await using opened = new AsyncDisposableStack();
  const stack = opened.use(await bootInTurn({ env: { ...ENV, TABERN_SESSIONS_MAX: '1' } }));
  const runners = await stack.pidsOf('runner');
  const sessions = runners.map(() => begun(stack, { ...QUIET, timeout: 75 }));
  const [taken] = await Promise.all(sessions);
  const waiting = async (): Promise<Session> => {
    const mark = crypto.randomUUID();
    const created = create(stack, { ...QUIET, userMetadata: { mark } });
    created.catch(() => undefined); // it fails when the session ends before its start
    return await marked(stack, mark);
  };
  const kept = opened.move();
  return {
    stack,
    taken: must(taken, 'a session'),
    waiting,
    [Symbol.asyncDispose]: () => kept.disposeAsync(),
  };
}

/** What waits ends before a place is free. */
async function withoutPlace(check: Check): Promise<void> {
  await using scene = await full();
  const { stack, taken, waiting } = scene;
  const [first, other] = [await waiting(), await waiting()];
  await release(stack, other);
  await Promise.all([
    check(ROW.releasedEarly, stack, { session: other }),
    check(ROW.noPlace, stack, { session: first }),
    check(ROW.timeout, stack, taken),
  ]);
}

/** Its browser starts when it has nearly waited for its time, and is stopped then. */
async function late(check: Check): Promise<void> {
  await using scene = await full();
  const { stack, taken, waiting } = scene;
  const begunAt = performance.now();
  const session = await waiting();
  await pause(QUEUE_WAIT_MS - 15_000 - (performance.now() - begunAt)); // a part of its wait
  const before = new Set(browsersOf(stack));
  await release(stack, taken.session);
  const own = await until(() => browsersOf(stack).find((pid) => !before.has(pid)), undefined, 1);
  process.kill(own, 'SIGSTOP');
  await check(ROW.late, stack, { session });
}

/** The runner stops for longer than it may be silent, and continues; then its service drains. */
async function withoutRunner(check: Check): Promise<void> {
  const times = { TABERN_LEASE_MS: '3000', TABERN_LOST_MS: '3000', TABERN_DRAIN_S: '2' };
  await using stack = await bootInTurn({ env: { ...ENV, ...times } });
  const made = await begun(stack, QUIET);
  await whileStopped(stack, made.session, () => ended(stack, made.session));
  await check(ROW.silent, stack, made);
  const last = await begun(stack, QUIET);
  await stack.kill('SIGTERM');
  await stack.restart();
  await check(ROW.drain, stack, last);
}

/** The runner stops until core has given the session up, and continues. */
async function stopped(check: Check): Promise<void> {
  await using stack = await bootInTurn({ env: ENV });
  const timed = await begun(stack, { ...QUIET, timeout: 60 });
  await whileStopped(stack, timed.session, () => ended(stack, timed.session));
  await check(ROW.timedOutLong, stack, timed);
}

/** While the runner of the session stands still. */
async function whileStopped(
  stack: Stack,
  { id }: { id: string },
  act: () => Promise<void>,
): Promise<void> {
  const pid = await stack.runnerPid(id);
  process.kill(pid, 'SIGSTOP');
  try {
    await act();
  } finally {
    process.kill(pid, 'SIGCONT');
  }
}

async function ended(stack: Stack, { id }: Session): Promise<void> {
  await until(
    async () => {
      const { status } = await stack.call<Session>(`/v1/sessions/${id}`);
      return status !== 'RUNNING';
    },
    GIVEN_UP_MS,
    POLL_MS,
  );
}

/** For ever: its lease thread ends the process. */
async function blocked(check: Check): Promise<void> {
  await using dir = tempDirectory();
  const file = join(dir.path, 'stall');
  const env = { ...ENV, TABERN_TEST_STALL: file };
  await using stack = await bootInTurn({ preload: PRELOAD, env });
  const made = await begun(stack, QUIET);
  writeFileSync(file, String(FOR_GOOD_MS));
  process.kill(await stack.runnerPid(made.session.id), 'SIGUSR2');
  await until(() => !existsSync(file));
  await check(ROW.blocked, stack, made);
}

/** The handoff ends when its minute is over. */
async function unvisited(check: Check): Promise<void> {
  await using stack = await bootInTurn({ env: { ...ENV, TABERN_SESSION_GRACE_MS: '10000' } });
  const unseen = await create(stack);
  const { session, client } = await begun(stack);
  const params = { instructions: 'do nothing', timeout: 60_000 };
  const { handoffId } = await ask(client, { id: 1, method: 'Tabern.handoff', params });
  const path = `/v1/sessions/${session.id}/handoffs/${must(handoffId, 'the id of a handoff')}`;
  client.close();
  await until(async () => (await stack.call<Handoff>(path)).status === 'EXPIRED', 120_000);
  const endedAt = performance.now();
  await Promise.all([
    check(ROW.unvisited, stack, { session: unseen }),
    check(ROW.handoff, stack, { session }),
  ]);
  ok(performance.now() - endedAt > 240_000, 'it was waited for');
}

type Handoff = { status: string };
