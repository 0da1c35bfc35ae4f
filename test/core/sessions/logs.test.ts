/** Protocol logs of sessions: kept in order and once, read in stretches, bounded, thrown away. */
import { zstdCompressSync } from 'node:zlib';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { newId } from '../../../core/common/ids.ts';
import { must } from '../../../proto/common/must.ts';
import { appendChunk } from '../../support/core/reports.ts';
import { purgeAt } from '../../support/core/retention.ts';
import { faultOf } from '../../support/fault.ts';
import { type Booted, boot } from '../boot.ts';
import { ENGINES, openBench, T0 } from '../store/engines.ts';

const test = suite('core/sessions/logs');
const MIB = 1 << 20;

/** A session that runs for an invocation, and how its runner adds to its log. */
async function openSession(app: Booted) {
  const { sessionId } = await app.invoke(await app.publish({ name: newId() }));
  const { leaseId } = must((await app.lease('INVOCATION'))[0], 'work');
  const append = (number: number, lines: readonly string[], size = lines.join('\n').length) =>
    appendChunk(app, {
      leaseId,
      number,
      size,
      count: lines.length,
      entries: zstdCompressSync(lines.join('\n')),
    });
  return { sessionId, leaseId, append };
}

function lineOf(method: string, more: object = {}): string {
  const request = { timestamp: T0, params: { url: 'http://a/' }, rawBody: '{"id":1}' };
  const entry = { method, pageId: 1, sessionId: 'not its own', timestamp: T0, request, ...more };
  return JSON.stringify(entry);
}

async function read(app: Booted, id: string, from?: number) {
  const { logs, next } = await app.clients.sessions.listSessionLogs({ id, from }, app.asProject);
  return { methods: logs.map(({ method }) => method), logs, next };
}

test('appended entries are readable at once, in order, with the id of the session', async () => {
  await using app = await boot();
  const { sessionId, append } = await openSession(app);
  const response = { timestamp: T0 + 2, result: { frameId: 'F' }, rawBody: '{}' };
  assert.equal(await append(0, [lineOf('Page.navigate', { response, frameId: 'F' })]), {
    full: false,
  });
  await append(1, [lineOf('Page.a'), lineOf('Page.b')]);
  const { logs, methods, next } = await read(app, sessionId);
  assert.equal(methods, ['Page.navigate', 'Page.a', 'Page.b']);
  assert.is(next, undefined);
  const [first, second] = logs;
  assert.is(first?.sessionId, sessionId);
  assert.is(first?.frameId, 'F');
  assert.equal(first?.request?.params, { url: 'http://a/' });
  assert.equal(first?.response, response);
  assert.is(second?.response, undefined);
});

test('a repeated chunk counts once, and a gap is refused', async () => {
  await using app = await boot();
  const { sessionId, append } = await openSession(app);
  await append(0, [lineOf('Page.a')]);
  await append(0, [lineOf('Page.again')]);
  assert.is((await faultOf(append(2, [lineOf('Page.c')]))).reason, 'INVALID_FIELD');
  await append(1, [lineOf('Page.b')]);
  assert.equal((await read(app, sessionId)).methods, ['Page.a', 'Page.b']);
});

test("only the session's lease appends to its log, and only its project reads it", async () => {
  await using app = await boot();
  const { sessionId, leaseId, append } = await openSession(app);
  await append(0, [lineOf('Page.a')]);
  const end = { leaseId, outcome: undefined, sessionStartMs: 0, steps: [] };
  await app.clients.runners.completeInvocation(end, app.asRunner);
  assert.is((await faultOf(append(1, [lineOf('Page.b')]))).reason, 'LEASE_LOST');
  assert.equal((await read(app, sessionId)).methods, ['Page.a']);
  assert.is((await faultOf(read(app, newId()))).reason, 'RESOURCE_NOT_FOUND');
  assert.is((await faultOf(read(app, 'x'))).reason, 'INVALID_FIELD');
});

test('a long log is read in consecutive parts without gaps', async () => {
  await using app = await boot();
  const { sessionId, append } = await openSession(app);
  for (let number = 0; number < 5; number++) {
    await append(number, [lineOf(`Page.n${number}`)], 400 << 10);
  }
  const seen: string[][] = [];
  let from: number | undefined = 0;
  while (from !== undefined) {
    const { methods, next } = await read(app, sessionId, from);
    seen.push(methods);
    from = next;
  }
  assert.equal(seen, [['Page.n0', 'Page.n1'], ['Page.n2', 'Page.n3'], ['Page.n4']]);
  assert.equal((await read(app, sessionId, 99)).methods, []);
});

test('a log is read on from the end of what was read, whatever came since', async () => {
  await using app = await boot();
  const { sessionId, append } = await openSession(app);
  const part = async (from: number) => {
    const call = { id: sessionId, from };
    const { logs, end } = await app.clients.sessions.listSessionLogs(call, app.asProject);
    return [logs.map(({ method }) => method), end];
  };
  assert.equal(await part(0), [[], 0]);
  await append(0, [lineOf('Page.a')]);
  assert.equal(await part(0), [['Page.a'], 1]);
  assert.equal(await part(1), [[], 1]);
  await append(1, [lineOf('Page.b')]);
  assert.equal(await part(1), [['Page.b'], 2]);
});

test('a full log accepts nothing more and ends with one warning', async () => {
  await using app = await boot();
  const { sessionId, append } = await openSession(app);
  for (let number = 0; number < 16; number++) {
    assert.is((await append(number, [lineOf('Page.a')], 4 * MIB)).full, false);
  }
  assert.is((await append(16, [lineOf('Page.late')], 1)).full, true);
  assert.is((await append(16, [lineOf('Page.later')], 1)).full, true);
  const methods: string[] = [];
  let from: number | undefined = 0;
  while (from !== undefined) {
    const { methods: some, next } = await read(app, sessionId, from);
    methods.push(...some);
    from = next;
  }
  assert.equal(methods, [...Array(16).fill('Page.a'), 'Tabern.warning']);
});

test('an invalid chunk is refused, an invalid line becomes a warning', async () => {
  await using app = await boot();
  const { sessionId, append } = await openSession(app);
  const refused = append(0, [lineOf('Page.a')], 5 * MIB);
  assert.is((await faultOf(refused)).reason, 'INVALID_FIELD');
  await append(0, [lineOf('Page.a'), '{"method":', lineOf('Page.b')]);
  const { logs, methods } = await read(app, sessionId);
  assert.equal(methods, ['Page.a', 'Tabern.warning', 'Page.b']);
  assert.match(String(logs[1]?.request?.params?.['message']), /damaged/);
});

for (const engine of ENGINES) {
  test(`${engine.name}: retention removes old chunks only`, async () => {
    await using bench = await openBench(engine);
    const { store } = bench;
    const projectId = await bench.project('p');
    const { sessionId } = await bench.accept(projectId, await bench.publish(projectId));
    const leaseId = (await bench.lease('invocation'))[0]?.leaseId ?? '';
    const chunk = { entries: zstdCompressSync(lineOf('Page.a')), count: 1, size: 100 };
    const add = (number: number, at: number) =>
      store.appendSessionLog({ ...chunk, leaseId, endedAfter: T0, number, maxBytes: MIB, at });
    for (let number = 0; number < 700; number++) await add(number, T0);
    await add(700, T0 + 1_000);
    const cleanAt = (at: number, keptMs: number) =>
      purgeAt(at, ['session logs'], { store, keptMs: { 'session logs': keptMs } });
    await cleanAt(T0 + 500, 0);
    const left = await store.readSessionLog({ sessionId, from: 0, maxBytes: MIB });
    assert.equal(
      left.chunks.map(({ number }) => number),
      [700],
    );
    await cleanAt(T0 + 9_000, 8_000);
    assert.is((await store.readSessionLog({ sessionId, from: 0, maxBytes: MIB })).chunks.length, 1);
    await cleanAt(T0 + 9_001, 8_000);
    assert.equal((await store.readSessionLog({ sessionId, from: 0, maxBytes: MIB })).chunks, []);
  });
}

test.run();
