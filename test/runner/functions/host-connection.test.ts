/** Invalid messages of a hostile host kill that host: the test writes them to a real socket. */
import { once } from 'node:events';
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { connect, createServer, type Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import type { Log } from '../../../proto/common/log.ts';
import { HostConnection, type RunOutcome } from '../../../runner/functions/host-connection.ts';
import {
  encode,
  type FromHost,
  type LogLine,
  RUN_MAX_BYTES,
} from '../../../runner/host/messages.ts';
import type { Exit, Jailed } from '../../../runner/jail/jail.ts';

const test = suite('runner/functions/host-connection');
const order = { type: 'introspect', id: 'i', bundle: 'b' } as const;
const line = { level: 'log', message: 'a', timestamp: 1 } as const;
const result: FromHost = { type: 'result', id: 'i', json: '1' };
const done: FromHost = { type: 'done', id: 'i', retired: '' };

type Scene = AsyncDisposable & {
  host: HostConnection;
  /** The host's end. */
  socket: Socket;
  say(...messages: FromHost[]): void;
  run(id?: string, signal?: AbortSignal): Promise<RunOutcome>;
  lines: LogLine[];
  warnings: string[];
  isKilled(): boolean;
};

async function open(memoryBytes = 0): Promise<Scene> {
  const dir = await mkdtemp(join(tmpdir(), 'talk-'));
  const bundle = { path: join(dir, 'b'), sha256: 'b' };
  await writeFile(bundle.path, '');
  await mkdir(join(dir, 'fn'));
  const server = createServer().listen(join(dir, 'ctl.sock'));
  await once(server, 'listening');
  const socket = connect(join(dir, 'ctl.sock'));
  const [ours] = (await once(server, 'connection')) as [Socket];
  const exited = Promise.withResolvers<Exit>();
  let isKilled = false;
  const kill = (): void => {
    isKilled = true;
    exited.resolve({ code: null, signal: 'SIGKILL' });
  };
  const lines: LogLine[] = [];
  const warnings: string[] = [];
  const host = new HostConnection(
    {
      jailed: { exited: exited.promise, kill } as unknown as Jailed,
      dir,
      broker: {} as never,
      ended: exited.promise.then(() => undefined),
      log: { warn: (facts: { cause: string }) => warnings.push(facts.cause) } as unknown as Log,
      tail: () => '',
      memory: () => memoryBytes,
      cpuMs: () => 0,
    },
    ours,
  );
  socket.on('error', () => undefined).write(encode({ type: 'ready', cdpPort: 9222 }));
  await host.ready;
  const never = new AbortController().signal;
  return {
    host,
    socket,
    lines,
    warnings,
    say: (...messages) => void socket.write(Buffer.concat(messages.map(encode))),
    isKilled: () => isKilled,
    run: (id = order.id, signal = never) => {
      const onLines = (more: LogLine[]): void => void lines.push(...more);
      return host.run({ ...order, id }, bundle, { onLines, signal });
    },
    async [Symbol.asyncDispose]() {
      host.kill('the test is over');
      await host.ended;
      socket.destroy();
      server.close();
      await rm(dir, { recursive: true });
    },
  };
}

/** Starts a run and waits until the host has received it. */
async function started(scene: Scene): Promise<Promise<RunOutcome>[]> {
  const running = scene.run();
  await once(scene.socket, 'data');
  return [running]; // in a list: an async function would wait for it
}

const flood = Array.from({ length: RUN_MAX_BYTES / 16 }, () => ({ ...line, message: '' }));
const HOSTILE: [string, FromHost[], RegExp][] = [
  ['ready a second time', [{ type: 'ready', cdpPort: 1 }], /ready twice/],
  ['a message for an unknown run', [{ ...done, id: 'other' }], /an unknown invocation/],
  ['more lines than a run may print', logs([...flood, ...flood]), /the log limit of a run/],
];

for (const [title, messages, cause] of HOSTILE) {
  test(`${title} kills the host, and its run fails as a workload error`, async () => {
    await using scene = await open();
    const [running] = await started(scene);
    scene.say(...messages);
    const outcome = await running;
    assert.is(outcome?.type === 'failure' && outcome.code, 'WORKLOAD_ERROR');
    assert.match(outcome?.type === 'failure' ? outcome.message : '', cause);
    assert.ok(scene.isKilled());
    assert.is(scene.warnings.length, 1);
  });
}

test('a second outcome kills the host and is ignored', async () => {
  await using scene = await open();
  const [running] = await started(scene);
  scene.say(result, { ...result, json: '2' });
  assert.equal(await running, result);
  await scene.host.ended;
  assert.ok(scene.isKilled());
});

test('the maximum of log lines is accepted; lines after the outcome are dropped', async () => {
  await using scene = await open();
  const [running] = await started(scene);
  scene.say(...logs(flood), result, ...logs([line]));
  assert.equal(await running, result);
  assert.is(scene.lines.length, flood.length);
  scene.say(done);
  while (scene.host.runs() > 0) await new Promise((resolve) => setImmediate(resolve));
  assert.is(scene.lines.length, flood.length);
  assert.not(scene.isKilled());
});

test('a run that keeps its thread costs its host after the last pending run', async () => {
  await using scene = await open();
  const [first] = await started(scene);
  const second = scene.run('j');
  await once(scene.socket, 'data');
  scene.say(result);
  assert.equal(await first, result);
  while (scene.host.isUsable()) await new Promise((resolve) => setTimeout(resolve, 5));
  assert.not(scene.isKilled(), 'the other one goes on');
  scene.say({ ...result, id: 'j' });
  assert.equal(await second, { ...result, id: 'j' });
  await scene.host.ended;
  assert.ok(scene.isKilled());
  assert.equal(scene.warnings, []);
});

test('an aborted run that does not end costs its host after the last pending run', async () => {
  await using scene = await open();
  const [first] = await started(scene);
  const told = once(scene.socket, 'data');
  const second = scene.run('j', AbortSignal.abort());
  await told;
  assert.equal(await second, { type: 'aborted' });
  assert.not(scene.host.isUsable());
  assert.not(scene.isKilled(), 'the other one goes on');
  scene.say(result);
  assert.equal(await first, result);
  await scene.host.ended;
  assert.ok(scene.isKilled());
});

test('a host that uses much memory at the end of a run takes no more runs', async () => {
  for (const [bytes, isUsable] of [
    [700 * 2 ** 20, true],
    [800 * 2 ** 20, false],
  ] as const) {
    await using scene = await open(bytes);
    const [running] = await started(scene);
    scene.say(result);
    assert.equal(await running, result);
    assert.is(scene.host.isUsable(), isUsable);
    assert.not(scene.isKilled(), 'who holds it lets it go');
  }
});

test('a host without pending outcomes ends without a warning', async () => {
  await using scene = await open();
  const [running] = await started(scene);
  scene.say({ type: 'manifests', id: 'i', json: '[]' });
  await running;
  scene.host.kill('its build has ended');
  await scene.host.ended;
  assert.equal(scene.warnings, []);
});

function logs(lines: LogLine[]): FromHost[] {
  const frames: FromHost[] = [];
  for (let at = 0; at < lines.length; at += 1_000) {
    frames.push({ type: 'log', id: 'i', lines: lines.slice(at, at + 1_000) });
  }
  return frames;
}

test.run();
