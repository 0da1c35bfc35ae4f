/**
 * The protocol log is sent to core soon, in order, once, completely, in limited chunks; also what
 * was recorded while core was away.
 */
import { readdirSync } from 'node:fs';
import { zstdDecompressSync } from 'node:zlib';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { must } from '../../../../proto/common/must.ts';
import type { SessionLogChunk } from '../../../../proto/gen/tabern/v1/runners.pb.ts';
import { Fault } from '../../../../proto/rpc/errors.ts';
import { openShares } from '../../../../proto/sharing/shares.ts';
import type { Chrome } from '../../../../runner/browser/launch.ts';
import { sessionLogs } from '../../../../runner/sessions/log/log-shipper.ts';
import { openLogSpace, RESERVED_BYTES } from '../../../../runner/sessions/log/spool.ts';
import { until } from '../../../support/poll.ts';
import { testLease, testRunner } from '../../../support/runner/lease.ts';
import { tempDirectory } from '../../../support/temp.ts';

const test = suite('runner/sessions/log/log-shipper');
const LIMIT_MS = 20_000;

type Entry = {
  method: string;
  sessionId: string;
  request: { params: { message?: string } };
};
type Answer = { full: boolean } | Error;

/** A log whose core responds as `answerOf` returns; a Chrome without pages. */
async function openBench(
  answerOf: (call: number) => Answer = () => ({ full: false }),
  { runDir = '/nonexistent', space = openLogSpace() } = {},
) {
  const taken: SessionLogChunk[] = [];
  let calls = 0;
  const lost = new AbortController();
  const lease = testLease('a-lease', {
    lost: lost.signal,
    async append(entry) {
      if (entry.kind !== 'chunk') throw new Error('not a chunk');
      calls += 1;
      const answer = answerOf(calls);
      if (answer instanceof Error) throw answer;
      taken.push(entry.chunk);
      return answer.full;
    },
  });
  const runner = testRunner({ now: () => 5, runDir });
  const own = { sessionId: 'a-session', projectId: 'a-project' };
  const logs = sessionLogs(own, { runner, lease, space });
  const { promise: closed } = Promise.withResolvers<void>();
  const none = { targetInfos: [] };
  const pipe = { call: async () => none, onEvent: () => () => undefined, closed };
  const part = await logs.open({ pipe } as unknown as Chrome);
  const recorder = must(part.recorder, 'a recorder');
  const session = recorder.session(0);
  return {
    logs,
    recorder,
    part,
    taken,
    lost,
    calls: () => calls,
    event: (n: number, more = '') =>
      session.onMessage(Buffer.from(`{"method":"Page.n${n}","params":{"more":"${more}"}}`), n),
    /** What core has, entry by entry. */
    entries: () =>
      taken.flatMap(({ entries }) => {
        const lines = zstdDecompressSync(entries).toString().split('\n');
        return lines.map((line) => JSON.parse(line) as Entry);
      }),
  };
}

const named = (count: number): string[] => Array.from({ length: count }, (_, n) => `Page.n${n}`);
const methodsOf = (entries: readonly { method: string }[]) => entries.map(({ method }) => method);

test('entries are sent without a flush or a file, with their count and size', async () => {
  await using dir = tempDirectory();
  const { event, taken, entries, part } = await openBench(undefined, { runDir: dir.path });
  event(0);
  event(1);
  await until(() => taken.length > 0, LIMIT_MS);
  const [chunk] = taken;
  assert.is(chunk?.leaseId, 'a-lease');
  assert.is(chunk?.number, 0);
  assert.is(chunk?.count, 2);
  assert.is(chunk?.size, zstdDecompressSync(must(chunk, 'a chunk').entries).length);
  assert.equal(methodsOf(entries()), named(2));
  assert.is(entries()[0]?.sessionId, 'a-session');
  assert.equal(readdirSync(dir.path), []);
  await part.closeLast?.();
  assert.is(taken.length, 1);
});

test('many entries are sent in numbered chunks, in order, before the end', async () => {
  const { event, taken, entries, part } = await openBench();
  for (let n = 0; n < 3_000; n++) event(n, 'x'.repeat(n % 1_000));
  await part.closeLast?.();
  assert.equal(methodsOf(entries()), named(3_000));
  assert.equal(
    taken.map(({ number }) => number),
    taken.map((_, index) => index),
  );
  for (const { count, size } of taken) assert.ok(count <= 500 && size < 1 << 20);
});

test('the end of an empty log sends nothing', async () => {
  const { part, calls } = await openBench();
  await part.closeLast?.();
  assert.is(calls(), 0);
});

test('after an outage core gets the same chunk again, then later entries', async () => {
  const away = new Fault('CORE_UNAVAILABLE', 'core is not there');
  const { event, entries, taken, part, calls } = await openBench((call) =>
    call <= 2 ? away : { full: false },
  );
  event(0);
  await until(() => calls() === 1, LIMIT_MS);
  event(1);
  await until(() => taken.length > 0, LIMIT_MS);
  await part.closeLast?.();
  assert.equal(methodsOf(entries()), named(2));
  assert.equal(
    taken.map(({ number }) => number),
    [0, 1],
  );
});

const AWAY = new Fault('CORE_UNAVAILABLE', 'core is not there');
/** In bytes, of one event: 200 of them are more than memory has. */
const LONG = 60_000;
const LONG_COUNT = 200;
const MEMORY_BYTES = 2 << 20;

/** Events as a client causes them: others have their turns between them. */
async function emit(
  { event, recorder }: Pick<Awaited<ReturnType<typeof openBench>>, 'event' | 'recorder'>,
  { from = 0, isStored }: { from?: number; isStored: boolean },
) {
  for (let n = from; n < from + LONG_COUNT; n++) {
    event(n, 'x'.repeat(LONG));
    if (isStored) await until(() => recorder.bytes <= MEMORY_BYTES, LIMIT_MS, 1);
  }
}

/** The number of dropped entries that the entry names; 0 in another entry. */
const droppedIn = ({ request }: Entry): number =>
  Number(/^(\d+) entries were dropped/.exec(request.params.message ?? '')?.[1] ?? 0);

test('a log that outgrew memory while core was away is whole afterwards', async () => {
  await using dir = tempDirectory();
  let isAway = true;
  const answer = () => (isAway ? AWAY : { full: false });
  const bench = await openBench(answer, { runDir: dir.path });
  await emit(bench, { isStored: true });
  assert.is(readdirSync(dir.path).length, 1);
  assert.is(bench.taken.length, 0);
  isAway = false;
  await until(() => bench.taken.length > 0, LIMIT_MS);
  await emit(bench, { from: LONG_COUNT, isStored: true });
  await bench.part.closeLast?.();
  assert.equal(methodsOf(bench.entries()), named(2 * LONG_COUNT));
  assert.equal(
    bench.taken.map(({ number }) => number),
    bench.taken.map((_, index) => index),
  );
  assert.equal(readdirSync(dir.path), []);
});

test('the log of a session that ends while core is away is whole afterwards', async () => {
  await using dir = tempDirectory();
  let isAway = true;
  const bench = await openBench(() => (isAway ? AWAY : { full: false }), { runDir: dir.path });
  await emit(bench, { isStored: true });
  const closed = bench.part.closeLast?.();
  isAway = false;
  await closed;
  assert.equal(methodsOf(bench.entries()), named(LONG_COUNT));
  assert.equal(readdirSync(dir.path), []);
});

for (const [what, end] of [
  ['is full', { full: true }],
  ['is refused', new Fault('LEASE_LOST', 'lost')],
] as const) {
  test(`what waits of a log that ${what} is removed, and not sent`, async () => {
    await using dir = tempDirectory();
    let isAway = true;
    let answers = 0;
    const answer = () => {
      if (isAway) return AWAY;
      answers += 1;
      return end;
    };
    const bench = await openBench(answer, { runDir: dir.path });
    await emit(bench, { isStored: true });
    assert.is(readdirSync(dir.path).length, 1);
    isAway = false;
    await until(() => readdirSync(dir.path).length === 0, LIMIT_MS);
    await bench.part.closeLast?.();
    assert.is(answers, 1);
  });
}

for (const [what, limits] of [
  ['without a disk', { runDir: '/nonexistent' }],
  ['without room on the disk', { space: openShares(RESERVED_BYTES) }],
] as const) {
  test(`${what}, entries beyond 8 MiB are dropped, which one entry says`, async () => {
    await using dir = tempDirectory();
    let isAway = true;
    const answer = () => (isAway ? AWAY : { full: false });
    const bench = await openBench(answer, { runDir: dir.path, ...limits });
    await emit(bench, { isStored: false });
    isAway = false;
    await until(() => bench.recorder.ready === 0, LIMIT_MS);
    bench.event(LONG_COUNT);
    await bench.part.closeLast?.();
    const methods = methodsOf(bench.entries());
    const dropped = methods.indexOf('Tabern.warning');
    assert.ok(dropped > 100 && dropped < LONG_COUNT, `${dropped} of ${LONG_COUNT}`);
    const kept = [...named(dropped), 'Tabern.warning', `Page.n${LONG_COUNT}`];
    assert.equal(methods, kept);
    assert.is(droppedIn(must(bench.entries()[dropped], 'a warning')), LONG_COUNT - dropped);
    assert.equal(readdirSync(dir.path), []);
  });
}

test('entries are kept again when room returns on the disk, while core is away', async () => {
  await using dir = tempDirectory();
  let [isAway, hasRoom] = [true, false];
  const shares = openLogSpace();
  const acquire = (owner: string, bytes: number) => hasRoom && shares.acquire(owner, bytes);
  const given = { runDir: dir.path, space: { ...shares, acquire } };
  const bench = await openBench(() => (isAway ? AWAY : { full: false }), given);
  await emit(bench, { isStored: false });
  await until(() => bench.calls() > 0, LIMIT_MS); // the only chunk that is taken without room
  await emit(bench, { from: LONG_COUNT, isStored: false });
  assert.equal(readdirSync(dir.path), []);
  hasRoom = true;
  bench.event(2 * LONG_COUNT); // dropped, too
  await until(() => bench.recorder.bytes <= MEMORY_BYTES, LIMIT_MS);
  bench.event(2 * LONG_COUNT + 1);
  isAway = false;
  await bench.part.closeLast?.();
  const entries = bench.entries();
  assert.is(entries.at(-1)?.method, `Page.n${2 * LONG_COUNT + 1}`);
  const dropped = entries.map(droppedIn).filter((count) => count > 0);
  assert.is(dropped.length, 2);
  const [first = 0, second = 0] = dropped;
  assert.is(entries.length - 2 + first + second, 2 * LONG_COUNT + 2, 'kept or counted');
});

for (const [what, answer] of [
  ['is full', { full: true }],
  ['is refused', new Fault('LEASE_LOST', 'lost')],
] as const) {
  test(`a log that ${what} sends no more`, async () => {
    const { event, part, calls } = await openBench(() => answer);
    event(0);
    await until(() => calls() > 0, LIMIT_MS);
    event(1);
    await part.closeLast?.();
    assert.is(calls(), 1);
  });
}

test('the log of a lost lease is sent until core refuses it', async () => {
  const { event, part, lost, calls } = await openBench(
    (call) => new Fault(call === 1 ? 'CORE_UNAVAILABLE' : 'LEASE_LOST', 'away, then back'),
  );
  event(0);
  lost.abort();
  await part.closeLast?.();
  assert.is(calls(), 2);
});

test('a warning is an entry, also before the session is open', async () => {
  const { logs, part, entries } = await openBench();
  logs.warn('captchas are not solved here');
  await part.closeLast?.();
  assert.equal(methodsOf(entries()), ['Tabern.warning']);
});

test.run();
