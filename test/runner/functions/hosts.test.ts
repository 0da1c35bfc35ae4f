/** Handlers in real hosts in the real jail: outcomes, limits, and the separation of runs. */
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { MARKER } from '../../../runner/host/messages.ts';
import { until } from '../../support/poll.ts';
import { ticksOfThreads } from '../../support/service/processes.ts';
import { moduleOf, openYard, type Ran } from '../host/bundle.ts';

const test = suite('runner/functions/hosts');
/** A thread that has used so many since it wrote a line has reached what follows. */
const SOME_TICKS = 5;

function resultOf({ outcome }: Ran): unknown {
  if (outcome.type === 'result') {
    return outcome.json === undefined ? undefined : JSON.parse(outcome.json);
  }
  throw new Error(`no result: ${JSON.stringify(outcome)}`);
}

function failureOf({ outcome }: Ran) {
  if (outcome.type === 'failure') return outcome;
  throw new Error(`no failure: ${JSON.stringify(outcome).slice(0, 200)}`);
}

test('a handler receives ctx and params and returns its value', async () => {
  await using yard = await openYard();
  const value = resultOf(
    await yard.run(
      `return { keys: Object.keys(ctx).sort(), same: ctx.params === params, params,
        session: ctx.session, secrets: ctx.secrets, invocation: Object.keys(ctx.invocation),
        aborted: ctx.signal.aborted };`,
      { params: { a: [1, null, 'ü'] } },
    ),
  ) as { session: { id: string; connectUrl: string } };
  const { session, ...rest } = value;
  assert.is(session.id, 'session');
  assert.match(session.connectUrl, /^ws:\/\/127\.0\.0\.1:9222\/\?signingKey=key-\d+$/);
  assert.equal(rest, {
    keys: ['invocation', 'params', 'secrets', 'session', 'signal'],
    same: true,
    params: { a: [1, null, 'ü'] },
    secrets: {},
    invocation: ['id', 'region'],
    aborted: false,
  });
});

test('null is a result, undefined is none', async () => {
  await using yard = await openYard();
  assert.is(resultOf(await yard.run('return undefined;')), undefined);
  assert.is(resultOf(await yard.run('return null;')), null);
});

const FAILURES: [string, string, { name?: string; message: RegExp; stack?: RegExp }][] = [
  [
    'a thrown error keeps its name and stack',
    `throw new TypeError('no such page');`,
    { name: 'TypeError', message: /^no such page$/, stack: /^TypeError: no such page\n {4}at / },
  ],
  ['a thrown text is told', `throw 'text';`, { name: '', message: /^the handler threw text$/ }],
  ['a thrown null is told', `throw null;`, { name: '', message: /^the handler threw null$/ }],
  [
    'a BigInt cannot be a result',
    `return { n: 1n };`,
    { message: /cannot be written as JSON: .*BigInt/ },
  ],
  [
    'a cycle cannot be a result',
    `const a = {}; a.a = a; return a;`,
    { message: /cannot be written as JSON: .*circular/ },
  ],
  [
    'a result above 6 MiB is refused with the limit',
    `return 'x'.repeat(7 * 1024 * 1024);`,
    { message: /7340034 bytes of JSON; the limit is 6291456/ },
  ],
  ['process.exit is told', `process.exit(3);`, { message: /process\.exit\(3\)/ }],
  [
    'a floating rejection fails the run',
    `Promise.reject(new RangeError('floating')); await new Promise((r) => setTimeout(r, 5000));`,
    { name: 'RangeError', message: /^floating$/ },
  ],
  [
    'running out of memory is reported',
    `const a = []; for (let i = 0; ; i++) a.push(String(i).repeat(100).split(''));`,
    { message: /ran out of memory/ },
  ],
  ['an unknown function is told', ``, { message: /defines no function "g"/ }],
];

for (const [title, body, want] of FAILURES) {
  test(`${title}, and the next run is unaffected`, async () => {
    await using yard = await openYard();
    const name = title.startsWith('an unknown') ? 'g' : 'f';
    const failure = failureOf(await yard.run(body, { name }));
    assert.is(failure.code, 'WORKLOAD_ERROR');
    assert.match(failure.message, want.message);
    if (want.name !== undefined) assert.is(failure.name, want.name);
    if (want.stack) assert.match(failure.stack, want.stack);
    assert.not.match(failure.stack, /piscina|runner\/host|node:internal/);
    assert.is(resultOf(await yard.run('return 1;')), 1);
  });
}

test('a huge error message is truncated, a result of almost 6 MiB is whole', async () => {
  await using yard = await openYard();
  const failure = failureOf(await yard.run(`throw new Error('m'.repeat(1e6));`));
  assert.is(failure.message.length, 16 * 1024);
  const text = resultOf(await yard.run(`return '"'.repeat(3 * 1024 * 1024 - 1);`)) as string;
  assert.is(text.length, 3 * 1024 * 1024 - 1);
});

test('an abort ends an endless loop and no other run', async () => {
  await using yard = await openYard();
  const sibling = yard.run(`await new Promise((r) => setTimeout(r, 3500)); return 'alive';`);
  const ended = await yard.run(`console.log('before'); for (;;);`, { endOn: 'before' });
  assert.is(ended.outcome.type, 'aborted');
  assert.equal(
    ended.lines.map(({ message }) => message),
    ['before'],
  );
  assert.is(resultOf(await sibling), 'alive');
});

test('a loop that ignores termination has its host killed', async () => {
  await using yard = await openYard();
  const loop = `console.log('begun'); for (;;) new Array(1000).fill({});`;
  const ended = await yard.run(loop, { endOn: 'begun' });
  assert.is(ended.outcome.type, 'aborted');
  assert.is(resultOf(await yard.run('return 2;')), 2);
});

test('threads that do not end delay later runs of their project and fail none', async () => {
  await using yard = await openYard();
  const ends = [new AbortController(), new AbortController(), new AbortController()] as const;
  const said: string[] = [];
  const live = (at: 0 | 1 | 2): Promise<Ran> => {
    const body = `console.log('live ${at}'); await new Promise(() => {});`;
    return yard.run(body, { signal: ends[at].signal, onLine: (message) => said.push(message) });
  };
  const begun = (at: number) => until(() => said.includes(`live ${at}`));
  /** Three threads in native code, where nothing ends them. */
  const block = async (): Promise<void> => {
    const body = `console.log('begun');
      process.getBuiltinModule('crypto').pbkdf2Sync('a', 'b', 2 ** 31 - 1, 64, 'sha512');`;
    const end = new AbortController();
    let begun = 0;
    const onLine = (): void => {
      begun += 1;
    };
    const all = Array.from({ length: 3 }, () => yard.run(body, { signal: end.signal, onLine }));
    await until(() => begun === 3);
    const before = ticksOfThreads(process.pid);
    await until(() => {
      const now = [...ticksOfThreads(process.pid)];
      return now.filter(([id, ticks]) => ticks - (before.get(id) ?? 0) > SOME_TICKS).length >= 3;
    });
    end.abort();
    const types = (await Promise.all(all)).map(({ outcome }) => outcome.type);
    assert.equal(types, ['aborted', 'aborted', 'aborted']);
  };
  const first = live(0);
  await begun(0);
  await block();
  const second = live(1);
  await begun(1);
  await block();
  assert.is(yard.hosts.threads(), 8);
  const third = live(2);
  await until(() => said.length > 2); // by the third run
  assert.match(said[2] ?? '', /earlier invocations of this project/);
  assert.is(yard.hosts.threads(), 8);
  assert.is(resultOf(await yard.run('return 1;', { projectId: 'other' })), 1);
  ends[0].abort();
  assert.is((await first).outcome.type, 'aborted');
  await begun(2); // the first host has ended
  const late = new AbortController();
  await block();
  const fourth = yard.run('return 4;', { signal: late.signal, onLine: () => late.abort() });
  assert.is((await fourth).outcome.type, 'aborted', 'a run that waits can be ended');
  ends[1].abort();
  ends[2].abort();
  for (const one of [second, third]) assert.is((await one).outcome.type, 'aborted');
});

test('ctx.signal aborts with the run, and later output is kept', async () => {
  await using yard = await openYard();
  const ended = await yard.run(
    `const aborted = new Promise((r) => ctx.signal.addEventListener('abort', r));
      console.log('begun'); await aborted; console.log('bye'); return 1;`,
    { endOn: 'begun' },
  );
  assert.is(ended.outcome.type, 'aborted');
  assert.equal(
    ended.lines.map(({ message }) => message),
    ['begun', 'bye'],
  );
});

test('console lines arrive in order, with their levels, before the outcome', async () => {
  await using yard = await openYard();
  const { lines } =
    await yard.run(`console.log('a %d', 1); console.warn({ b: 2 }); console.error('c\\nd');
    process.stdout.write('e'); process.stdout.write('f\\n'); console.debug('g'); console.info('h');
    console.table([{ x: 1 }]); process.stderr.write('last');`);
  assert.equal(
    lines.slice(0, 7).map(({ level, message }) => [level, message]),
    [
      ['log', 'a 1'],
      ['warn', '{ b: 2 }'],
      ['error', 'c'],
      ['error', 'd'],
      ['log', 'ef'],
      ['debug', 'g'],
      ['info', 'h'],
    ],
  );
  assert.equal([lines.at(-1)?.level, lines.at(-1)?.message], ['error', 'last']);
  assert.ok(lines.every(({ timestamp }) => Math.abs(Date.now() - timestamp) < 60_000));
});

test('a flood of lines is truncated at 1 MiB with one marker, in order', async () => {
  await using yard = await openYard();
  const { lines, outcome } = await yard.run(
    `for (let i = 0; i < 300000; i++) console.log('line ' + i); return 'done';`,
  );
  assert.equal(outcome, { type: 'result', id: (outcome as { id?: string }).id, json: '"done"' });
  assert.is(lines.at(-1)?.message, MARKER);
  assert.is(lines.filter(({ message }) => message === MARKER).length, 1);
  const kept = lines.slice(0, -1);
  assert.ok(kept.every(({ message }, index) => message === `line ${index}`));
  const bytes = kept.reduce((sum, { message }) => sum + message.length + 16, 0);
  assert.ok(bytes <= 1024 * 1024 && bytes > 1024 * 1024 - 64, `${bytes}`);
});

test('a clean thread is reused, a thread with leftovers is not', async () => {
  await using yard = await openYard();
  const source = moduleOf(`
    count: () => (globalThis.n = (globalThis.n ?? 0) + 1),
    pollute: () => { Object.prototype.x = 1; return globalThis.n; },
    replace: () => { Array.prototype.map = () => 'evil'; return globalThis.n; },
    timer: () => { setInterval(() => console.log('late'), 10); return globalThis.n; }`);
  const bundle = await yard.bundle(source);
  const call = async (name: string) => {
    const ran = await yard.run('', { bundle, name });
    await yard.idle();
    return [resultOf(ran), ran.lines.length];
  };
  assert.equal(await call('count'), [1, 0]);
  assert.equal(await call('count'), [2, 0]);
  for (const dirty of ['pollute', 'replace', 'timer']) {
    assert.equal(await call(dirty), [2, 0], dirty);
    assert.equal(await call('count'), [1, 0], `a new thread after ${dirty}`);
    assert.equal(await call('count'), [2, 0]);
  }
});

test('a thread is bound to one bundle; more bundles than threads replace the oldest', async () => {
  await using yard = await openYard();
  for (let i = 0; i < 6; i++) assert.is(resultOf(await yard.run(`return ${i};`)), i);
});

test('each project has a process of its own', async () => {
  await using yard = await openYard();
  const source = moduleOf(`f: () => (globalThis.n = (globalThis.n ?? 0) + 1)`);
  const bundle = await yard.bundle(source);
  const [a, b] = await Promise.all([
    yard.run('', { bundle, projectId: 'a' }),
    yard.run('', { bundle, projectId: 'b' }),
  ]);
  assert.equal([resultOf(a), resultOf(b)], [1, 1]);
});

test('frames for an unknown invocation kill the host', async () => {
  await using yard = await openYard();
  // a tenant who has taken over the main thread can do this, too: here the frame is written to the
  // socket's descriptor
  const forge = `const fs = await import('node:fs');
    const body = JSON.stringify({ type: 'log', id: 'someone-else', lines: [] });
    const frame = Buffer.alloc(4 + body.length);
    frame.writeUInt32BE(body.length); frame.write(body, 4);
    for (let fd = 3; fd < 64; fd++) { try { fs.writeSync(fd, frame); } catch {} }
    await new Promise((r) => setTimeout(r, 5000)); return 1;`;
  const failure = failureOf(await yard.run(forge));
  assert.is(failure.code, 'WORKLOAD_ERROR');
  assert.match(failure.message, /process was lost/);
  assert.is(resultOf(await yard.run('return 3;')), 3);
});

test('the first project claims the spare', async () => {
  await using yard = await openYard('auto', { spares: 1 });
  await yard.run('return 0;', { projectId: 'warm-up' });
  assert.is(resultOf(await yard.run('return 4;', { projectId: 'other' })), 4);
});

test('without a sandbox hosts behave the same, each with its own port', async () => {
  await using yard = await openYard('none');
  const value = resultOf(await yard.run('return ctx.session.connectUrl;'));
  assert.match(String(value), /^ws:\/\/127\.0\.0\.1:\d+\/\?signingKey=/);
});

test.run();
