/** One leased session to its end, with stubs of Chrome, the session server and core. */
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import type { CompleteSessionRequest } from '../../../proto/gen/tabern/v1/runners.pb.ts';
import { Fault } from '../../../proto/rpc/errors.ts';
import type { Clients } from '../../../proto/rpc/services.ts';
import type { Chrome } from '../../../runner/browser/launch.ts';
import { runSession, type SessionDeps } from '../../../runner/sessions/run-session.ts';
import { BROWSERS } from '../../support/runner/browsers.ts';
import { testLease, testRunner } from '../../support/runner/lease.ts';

const test = suite('runner/sessions/run-session');
/** This Chrome sends no messages. */
const QUIET = { browserSettings: { logSession: false, recordSession: false } };
const WORK = {
  sessionId: 's',
  projectId: 'p',
  signingKey: 'k',
  sessionParamsJson: JSON.stringify(QUIET),
  timeoutMs: 1_000_000,
  keepAlive: true,
  context: undefined,
  extension: undefined,
  moreExtensions: [],
  caCertificates: [],
};

type Scene = {
  take?: (signal: AbortSignal) => Promise<Chrome>;
  /** Core's answer to StartSession; may abort the session's signals. */
  start?: (abort: Abort) => boolean;
  timeoutMs?: number;
  /** Of its time, when it starts. */
  passedMs?: number;
  /** Aborted before it begins. */
  before?: Name[];
  acknowledged?: Promise<void>;
  /** Why its Chrome was ended. */
  overMemory?: string;
};
type Name = 'lost' | 'released' | 'ending' | 'stopped' | 'crash';
type Abort = (name: Name) => void;

/** Runs it. Returns the reported ends, and the events in order. */
async function run({ take, start = () => true, before = [], ...scene }: Scene) {
  const acts: string[] = [];
  const told: CompleteSessionRequest[] = [];
  const pipe = Promise.withResolvers<void>();
  const gone = Promise.withResolvers<void>();
  const chrome = {
    dir: '/nowhere',
    pipe: { closed: pipe.promise, onEvent: () => () => {} },
    egress: {
      bytes: { sent: 2, received: 3, managed: 5 },
      steer: () => {},
      onRefusal: () => {},
    },
    exited: gone.promise.then(() => acts.push('chrome gone')),
    kill: () => gone.resolve(),
    exitReason: () => scene.overMemory,
  } as unknown as Chrome;
  const of = () => new AbortController();
  const signals = { lost: of(), released: of(), ending: of(), stopped: of() };
  const abort: Abort = (name) => (name === 'crash' ? pipe.resolve() : signals[name].abort());
  before.forEach(abort);
  const runners = {
    async startSession() {
      acts.push('started');
      return { accepted: start(abort) };
    },
    async completeSession(request: CompleteSessionRequest) {
      acts.push('told');
      told.push(request);
      return { accepted: true };
    },
  } as unknown as Clients['runners'];
  const startedAt = 1_000;
  let asked = 0;
  const runner = testRunner({
    clients: { runners },
    now: () => startedAt + (asked++ > 0 ? (scene.passedMs ?? 0) : 0),
    ending: signals.ending.signal,
    stopped: signals.stopped.signal,
  });
  const deps: SessionDeps = {
    runner,
    ...BROWSERS,
    chromes: { take: (_wanted, signal) => take?.(signal) ?? Promise.resolve(chrome) },
    sessionServer: {
      register(signingKey) {
        acts.push(`${signingKey} in`);
        return { [Symbol.dispose]: () => void acts.push(`${signingKey} out`) };
      },
    },
    times: { connectMs: 1_000_000, idleMs: 1_000_000, graceMs: 0, returnMs: 0, resumeMs: 0 },
  };
  const acknowledged = scene.acknowledged?.then(() => void acts.push('known'));
  const { lost, released } = signals;
  const given = { acknowledged, lost: lost.signal, released: released.signal };
  const work = { ...WORK, timeoutMs: scene.timeoutMs ?? WORK.timeoutMs };
  await runSession(work, testLease('lease', given, runner), deps);
  return { acts, told, end: told[0]?.end, reason: told[0]?.reason };
}

test('a session registers before its start and reports after Chrome has ended', async () => {
  const { acts, told } = await run({
    start(abort) {
      setImmediate(abort, 'released');
      return true;
    },
  });
  assert.equal(acts, ['k in', 'started', 'k out', 'chrome gone', 'told']);
  const reason = 'the session was released';
  assert.equal(told, [{ leaseId: 'lease', end: 'COMPLETED', reason, proxyBytes: 5 }]);
});

test('nothing is registered or reported before the lease is acknowledged', async () => {
  const soon = () => new Promise<void>((resolve) => setTimeout(resolve, 20));
  const start = (abort: Abort) => {
    setImmediate(abort, 'released');
    return true;
  };
  const { acts } = await run({ acknowledged: soon(), start });
  assert.equal(acts, ['known', 'k in', 'started', 'k out', 'chrome gone', 'told']);
  const take = () => Promise.reject(new Error('no Chrome'));
  const failed = await run({ acknowledged: soon(), take });
  assert.equal(failed.acts, ['known', 'told']);
});

test('the time limit counts from the start of Chrome', async () => {
  const late = await run({ timeoutMs: 60_000, passedMs: 60_000 });
  assert.is(late.end, 'TIMED_OUT');
  assert.is(late.reason, 'session timed out');
});

test('each end has a status and a reason', async () => {
  const expected = {
    released: ['COMPLETED', 'the session was released'],
    ending: ['ERROR', 'the service is shutting down'],
    crash: ['ERROR', 'the browser was lost'],
  } as const;
  for (const [name, [status, why]] of Object.entries(expected)) {
    const { end, reason, acts } = await run({
      start(abort) {
        setImmediate(abort, name as Name);
        return true;
      },
    });
    assert.is(end, status, name);
    assert.is(reason, why);
    assert.is(acts.filter((act) => act === 'chrome gone').length, 1);
  }
});

test("the reason of a session's end is the memory limit of its browser", async () => {
  const { end, reason } = await run({
    overMemory: 'it used more than 1 MiB of memory',
    start(abort) {
      setImmediate(abort, 'crash');
      return true;
    },
  });
  assert.is(`${end}: ${reason}`, 'ERROR: the browser was lost: it used more than 1 MiB of memory');
});

test('a lost lease is not reported, nor a session whose start core refuses', async () => {
  const lost = await run({
    start(abort) {
      setImmediate(abort, 'lost');
      return true;
    },
  });
  assert.equal(lost.acts, ['k in', 'started', 'k out', 'chrome gone']);
  const late = await run({ start: () => false });
  assert.equal(late.acts, ['k in', 'started', 'k out', 'chrome gone']);
});

test('a failed start of Chrome is ERROR, without details of the machine', async () => {
  const { end, reason, acts } = await run({
    take: () => Promise.reject(new Error('no such file /srv/x')),
  });
  assert.is(end, 'ERROR');
  assert.is(reason, 'the browser could not be started');
  assert.equal(acts, ['told']);
});

test('a core that refuses the start is ERROR', async () => {
  const { end, acts } = await run({
    start() {
      throw new Fault('INTERNAL', 'no');
    },
  });
  assert.is(end, 'ERROR');
  assert.ok(acts.includes('chrome gone'));
});

test('a release before the start is COMPLETED; a runner that ends reports nothing', async () => {
  const take = async (signal: AbortSignal) => {
    signal.throwIfAborted();
    throw new Error('not aborted');
  };
  assert.is((await run({ take, before: ['released'] })).end, 'COMPLETED');
  assert.is((await run({ take, before: ['released', 'ending'] })).end, 'COMPLETED');
  assert.equal((await run({ take, before: ['ending'] })).acts, []);
  assert.equal((await run({ take, before: ['lost'] })).acts, []);
});

test.run();
