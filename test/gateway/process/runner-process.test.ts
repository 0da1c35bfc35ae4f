import { once } from 'node:events';
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { type AddressInfo, connect, createServer, type Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { RUNNER_LOST } from '../../../gateway/http/close-frames.ts';
import {
  forTracing,
  keepRunner,
  prepareRunner,
  runnerEnv,
} from '../../../gateway/process/runner-process.ts';
import { openLog } from '../../../proto/common/log.ts';
import { until } from '../../support/poll.ts';

const test = suite('gateway/process/runner-process');
const log = openLog({ role: 'test', level: 'silent' });

/** The program that node runs instead of a runner: `script`, with a file to write to as argv[1]. */
async function keep(script: string, more: { runnerId?: string } = {}) {
  const directory = await mkdtemp(join(tmpdir(), 'tabern-child-'));
  const file = join(directory, 'said');
  const runner = keepRunner({ PATH: '/bin' }, log, { command: ['-e', script, file], ...more });
  const said = async (text: string) => {
    let now = '';
    const isSaid = async () => {
      now = await readFile(file, 'utf8').catch(() => '');
      return now === text;
    };
    await until(isSaid).catch(() => assert.unreachable(`it said ${now}, not ${text}`));
  };
  return {
    runner,
    said,
    async [Symbol.asyncDispose]() {
      await runner.close();
      await rm(directory, { recursive: true });
    },
  };
}

const SAY = "const say = (text) => require('node:fs').appendFileSync(process.argv[1], text);";

test('a runner that exits is restarted', async () => {
  await using kept = await keep(`${SAY} say('x'); process.exit(1);`);
  await kept.said('xxx');
});

test('a runner that is restarted has the id of the one before, or the given one', async () => {
  const script = `${SAY}
    process.on('message', ({ runnerId = 'none' }) => {
      say(runnerId + ';');
      process.send({ type: 'session-server', address: '/x', runnerId: 'one' }, () => {
        process.exit(1);
      });
    });`;
  await using kept = await keep(script);
  await kept.said('none;one;one;');
  await using given = await keep(script, { runnerId: 'given' });
  await given.said('given;one;');
});

test('a runner that refuses to start is not restarted, and its exit code is returned', async () => {
  for (const code of [2, 78]) {
    await using kept = await keep(`${SAY} say('x'); process.exit(${code});`);
    assert.is(await kept.runner.refused, code);
    await kept.said('x');
  }
});

test('a runner that refuses to start after an earlier one was ready is restarted', async () => {
  // ready, then dead; refusing; ready
  const script = `${SAY}
    const lives = require('node:fs').existsSync(process.argv[1])
      ? require('node:fs').readFileSync(process.argv[1], 'utf8').length : 0;
    say('x');
    if (lives === 1) process.exit(78);
    process.send({ type: 'session-server', address: '/x', runnerId: 'one' }, () => {
      if (lives === 0) process.exit(1);
    });
    setInterval(() => {}, 1_000);`;
  await using kept = await keep(script);
  await kept.said('xxx');
});

test('a runner that was ready and then refuses is not restarted', async () => {
  const script = `${SAY} say('x');
    const opened = { type: 'session-server', address: '/x', runnerId: 'one' };
    process.send(opened, () => process.exit(78));`;
  await using kept = await keep(script);
  assert.is(await kept.runner.refused, 78);
  await kept.said('x');
});

test('a prepared runner works first, and another one in place of one that has ended', async () => {
  const directory = await mkdtemp(join(tmpdir(), 'tabern-child-'));
  const file = join(directory, 'said');
  const script = `const { appendFileSync } = require('node:fs');
    appendFileSync(process.argv[1], 'loaded ' + process.pid + ';');
    process.on('message', ({ type, core }) => {
      appendFileSync(process.argv[1], type + ' ' + core + ' ' + process.pid + ';');
    });`;
  const command = ['-e', script, file];
  const said = () => readFile(file, 'utf8').catch(() => '');
  const env = { PATH: '/bin' };
  for (const hasEnded of [false, true]) {
    await rm(file, { force: true });
    const prepared = prepareRunner(env, command);
    await until(async () => (await said()) === `loaded ${prepared.pid};`);
    if (hasEnded) {
      prepared.kill('SIGKILL');
      await once(prepared, 'exit');
    }
    const runner = keepRunner({ ...env, TABERN_CORE: 'unix:/core' }, log, { command, prepared });
    await until(async () => (await said()).includes('start unix:/core '));
    assert.is((await said()).includes(`start unix:/core ${prepared.pid};`), !hasEnded);
    assert.is((await said()).split('loaded').length - 1, hasEnded ? 2 : 1);
    await runner.close();
  }
  await rm(directory, { recursive: true });
});

test('close drains the runner and waits for it', async () => {
  const script = `${SAY}
    process.on('SIGTERM', () => setTimeout(() => { say('!'); process.exit(0); }, 50));
    process.on('disconnect', () => say('?'));
    say('up');`;
  await using kept = await keep(script);
  await kept.said('up');
  await kept.runner.close();
  await kept.said('up!');
});

test('a runner receives its part of the environment and no key of the operator', () => {
  const env = {
    PATH: '/bin',
    HOME: '/root',
    npm_execpath: '/npm',
    TABERN_DATA: '/srv',
    TABERN_CHROME: '/chrome',
    TABERN_API_KEY: 'a key',
    TABERN_API_KEY_FILE: '/key',
    TABERN_CONFIG: '/settings.json',
    TABERN_CONFIG_FILE: '/path of the settings',
    TABERN_GATEWAY_TOKEN: 'a token',
    AWS_SECRET_ACCESS_KEY: 'a secret',
    NODE_OPTIONS: '--inspect',
  };
  const { PATH, HOME, npm_execpath, TABERN_DATA, TABERN_CHROME } = env;
  assert.equal(runnerEnv(env), { PATH, HOME, npm_execpath, TABERN_DATA, TABERN_CHROME });
});

test('with tracing, the runner receives the preloads and the exporter’s variables', () => {
  const env = {
    NODE_OPTIONS: '--inspect --import ./tracing.js',
    OTEL_EXPORTER_OTLP_ENDPOINT: 'http://collector:4318',
    AWS_SECRET_ACCESS_KEY: 'a secret',
  };
  assert.equal(forTracing(env, ['--require', './more.cjs', '--inspect-brk']), {
    words: ['--import', './tracing.js', '--require', './more.cjs'],
    env: { OTEL_EXPORTER_OTLP_ENDPOINT: 'http://collector:4318' },
  });
  assert.equal(forTracing({}, []), { words: [], env: {} });
});

/** A fake runner: reports an address, answers a received socket, and continues with `then`. */
const runner = (then: string) => `
  process.send({ type: 'session-server', address: 'unix:/server', runnerId: 'one' });
  process.on('message', ({ type, id, bytesRead: bytes }, socket) => {
    if (type !== 'connection') return;
    const die = () => process.kill(process.pid, 9);
    const told = 'taken: ' + Buffer.from(bytes, 'base64');
    ${then}
  });`;

/** The bytes that a client receives whose connection is handed off. */
async function handOff(then: string): Promise<string> {
  await using kept = await keep(runner(then));
  const server = createServer();
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  const client = connect({ port, host: '127.0.0.1' });
  const [socket] = (await once(server, 'connection')) as [Socket];
  const said = () => Buffer.from('first');
  assert.not.ok(kept.runner.handOver('unix:/other', socket, said));
  await until(() => kept.runner.handOver('unix:/server', socket, said));
  const parts: Buffer[] = [];
  for await (const part of client) parts.push(part as Buffer);
  // node waits for ever for the sockets of a child that was killed, when it counts them as its own
  const closed = once(server, 'close');
  server.close();
  await closed;
  return Buffer.concat(parts).toString('latin1');
}

test('a connection is handed off to the runner of its address only', async () => {
  assert.is(await handOff('socket.end(told, die);'), 'taken: first');
});

test('a connection that the runner closes is closed', async () => {
  const close = "socket.on('close', () => process.send({ type: 'connection-closed', id }));";
  assert.is(await handOff(`${close} socket.write(told, () => socket.destroy());`), 'taken: first');
});

test('a connection of a killed runner ends with a close frame', async () => {
  const lost = RUNNER_LOST.toString('latin1');
  assert.is(await handOff('socket.write(told, die);'), `taken: first${lost}`);
});

test.run();
