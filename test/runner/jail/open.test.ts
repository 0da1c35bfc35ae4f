/** A process in a jail reaches what its spec lists and nothing else. Runs the real backends. */
import { once } from 'node:events';
import { existsSync, mkdtempSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { rm } from 'node:fs/promises';
import { type AddressInfo, createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { openLog } from '../../../proto/common/log.ts';
import type { Jail, JailSpec } from '../../../runner/jail/jail.ts';
import { openJail } from '../../../runner/jail/open.ts';
import { programMounts } from '../../../runner/jail/program-mounts.ts';
import { processes } from '../../support/service/processes.ts';

const open = suite('runner/jail/open');
const log = openLog({ role: 'test', level: 'silent', people: false });
const node = await programMounts(process.execPath, '/bin/node');
const LEVELS = ['bwrap', 'landlock', 'none'] as const;

type Room = AsyncDisposable & { dir: string };

function makeRoom(): Room {
  const dir = mkdtempSync(join(tmpdir(), 'tabern-jail-')); // 0700: the jail's uid cannot pass it
  return { dir, [Symbol.asyncDispose]: () => rm(dir, { recursive: true, force: true }) };
}

/** Evaluates a script inside and returns its output as JSON. */
async function evaluate(
  jail: Jail,
  script: string,
  more: Partial<Pick<JailSpec, 'mounts' | 'env' | 'limits' | 'hasChildren' | 'ports'>> = {},
): Promise<{ said: unknown; code: number | null; signal: string | null; text: string }> {
  const { mounts = [], env = () => ({}), limits = { files: 256 }, hasChildren, ports = [] } = more;
  const jailed = jail.launch({
    argv: (at) => [at('/bin/node'), '-e', script],
    mounts: [...node, ...mounts],
    env,
    limits,
    tmpBytes: 4 << 20,
    stdio: ['ignore', 'pipe', 'pipe'],
    nestedNamespaces: false,
    ports,
    ...(hasChildren === undefined ? {} : { hasChildren }),
  });
  let text = '';
  let errors = '';
  jailed.child.stdout?.on('data', (bytes) => {
    text += bytes;
  });
  jailed.child.stderr?.on('data', (bytes) => {
    errors += bytes;
  });
  const ended = new Promise((resolve) => jailed.child.on('close', resolve));
  const exit = await jailed.exited;
  await ended;
  return { said: text === '' ? undefined : JSON.parse(text), text: errors, ...exit };
}

const print = (expression: string): string => `console.log(JSON.stringify(${expression}))`;

open('a jail of bwrap contains the mounts and nothing else of the machine', async () => {
  const jail = await openJail({ sandbox: 'auto', log });
  assert.is(jail.level, 'bwrap');
  const { said } = await evaluate(
    jail,
    print(`{
      root: fs.readdirSync('/').sort(), bin: fs.readdirSync('/bin'), env: process.env,
      pid: process.pid, uid: process.getuid(), pids: fs.readdirSync('/proc').filter(Number),
      net: Object.keys(os.networkInterfaces()), host: os.hostname(),
    }`),
    { env: (at) => ({ HOME: at('/tmp') }) },
  );
  const found = said as Record<string, unknown>;
  assert.equal(found['bin'], ['node']);
  assert.equal(
    (found['root'] as string[]).filter((name) => !name.startsWith('lib')),
    ['bin', 'dev', 'proc', 'tmp'],
  );
  assert.equal(found['env'], { HOME: '/tmp', PWD: '/' });
  assert.is(found['pid'], 1);
  assert.equal(found['pids'], ['1']);
  assert.is(found['uid'], 1000);
  assert.equal(found['net'], ['lo']);
  assert.is(found['host'], 'jail');
});

for (const level of LEVELS) {
  open(`${level}: the jail writes to a writable mount and not to a read-only one`, async () => {
    await using room = makeRoom();
    const file = join(room.dir, 'given');
    writeFileSync(file, 'given');
    const jail = await openJail({ sandbox: level, log });
    const mounts = [{ from: room.dir, to: '/data', writable: true }];
    const { code, text } = await evaluate(
      jail,
      `fs.writeFileSync(process.env.DATA + '/made', fs.readFileSync(process.env.DATA + '/given'));
       fs.writeFileSync(process.env.TMP + '/x', 'x')`,
      { mounts, env: (at) => ({ DATA: at('/data'), TMP: at('/tmp') }) },
    );
    assert.is(code, 0, text);
    assert.is(readFileSync(join(room.dir, 'made'), 'utf8'), 'given');
    assert.not(existsSync('/tmp/x'));
    const isRoot = process.getuid?.() === 0;
    if (level !== 'none' && isRoot) assert.is.not(statSync(join(room.dir, 'made')).uid, 0);
    if (level === 'none') return;
    const again = `fs.writeFileSync(process.env.DATA + '/again', '')`;
    const readOnly = await evaluate(jail, again, {
      mounts: [{ from: room.dir, to: '/data' }],
      env: (at) => ({ DATA: at('/data') }),
    });
    assert.is(readOnly.code, 1);
    assert.not(existsSync(join(room.dir, 'again')));
  });

  open(`${level}: the exit code is returned, and a kill ends the whole tree`, async () => {
    const jail = await openJail({ sandbox: level, log });
    assert.is((await evaluate(jail, 'process.exit(7)')).code, 7);
    const jailed = jail.launch({
      argv: (at) => [
        at('/bin/node'),
        '-e',
        `child_process.spawn(process.execPath, ['-e', 'setInterval(() => {}, 1000)'],
           { stdio: 'inherit' }); console.log('ready'); setInterval(() => {}, 1000)`,
      ],
      mounts: node,
      env: () => ({}),
      limits: { files: 256 },
      tmpBytes: 1 << 20,
      stdio: ['ignore', 'pipe', 'ignore'],
      nestedNamespaces: false,
      hasChildren: true,
    });
    const out = jailed.child.stdout;
    await new Promise((resolve) => out?.once('data', resolve));
    // the grandchild holds the pipe, which closes when both have ended
    const closed = new Promise((resolve) => jailed.child.once('close', resolve));
    jailed.kill();
    await closed;
    assert.is((await jailed.exited).signal, 'SIGKILL');
    jailed.kill(); // harmless
  });

  open(`${level}: resource limits are enforced`, async () => {
    const jail = await openJail({ sandbox: level, log });
    const limits = { files: 64, fileBytes: 1 << 20 };
    const script = `let opened = 0;
      try { for (;;) { fs.openSync('/dev/null'); opened += 1 } } catch {}
      ${print('opened')}`;
    assert.ok(Number((await evaluate(jail, script, { limits })).said) < 64);
    const big = `process.on('SIGXFSZ', () => {});
      fs.writeFileSync(process.env.TMP + '/big', Buffer.alloc(2 << 20))`;
    const { code, signal } = await evaluate(jail, big, {
      limits,
      env: (at) => ({ TMP: at('/tmp') }),
    });
    assert.ok(code !== 0 || signal !== null);
  });
}

open('a jail of bwrap reaches nothing outside', async () => {
  const jail = await openJail({ sandbox: 'bwrap', log });
  const { said } = await evaluate(
    jail,
    `const tried = (name, act) => {
       try { act(); return [name, 'done'] } catch (error) { return [name, error.code] } };
     const all = [
       tried('passwd', () => fs.readFileSync('/etc/passwd')),
       tried('root', () => fs.writeFileSync('/x', '')),
       tried('dev', () => fs.writeFileSync('/dev/x', '')),
       tried('tmp full', () => fs.writeFileSync('/tmp/x', Buffer.alloc(8 << 20))),
       tried('shm full', () => fs.writeFileSync('/dev/shm/x', Buffer.alloc(8 << 20))),
       tried('signal', () => process.kill(${process.pid}, 0)),
     ];
     require('net').connect(${1}, '127.0.0.1').on('error', ({ code }) => {
       all.push(['loopback', code]);
       require('net').connect(80, '10.0.0.1').on('error', ({ code }) => {
         all.push(['lan', code]); console.log(JSON.stringify(all)); });
     });`,
  );
  assert.equal(said, [
    ['passwd', 'ENOENT'],
    ['root', 'EROFS'],
    ['dev', 'EROFS'],
    ['tmp full', 'ENOSPC'],
    ['shm full', 'ENOSPC'],
    ['signal', 'ESRCH'],
    ['loopback', 'ECONNREFUSED'],
    ['lan', 'ENETUNREACH'],
  ]);
});

open('a jail of Landlock reaches its loopback port and no other', async () => {
  const servers = [createServer(), createServer()].map((server) => server.listen(0, '127.0.0.1'));
  await Promise.all(servers.map((server) => once(server, 'listening')));
  const [named, other] = servers.map((server) => (server.address() as AddressInfo).port);
  const jail = await openJail({ sandbox: 'landlock', log });
  const script = `const tried = (port) => new Promise((resolve) => {
      const socket = require('net').connect(port, '127.0.0.1');
      socket.on('connect', () => { socket.destroy(); resolve('done'); });
      socket.on('error', ({ code }) => resolve(code)); });
    Promise.all([tried(${named}), tried(${other})]).then((all) => ${print('all')})`;
  const { said } = await evaluate(jail, script, { ports: [Number(named)] });
  for (const server of servers) server.close();
  assert.equal(said, ['done', 'EACCES']);
});

open('a missing program exits without an exception', async () => {
  for (const level of LEVELS) {
    const jail = await openJail({ sandbox: level, log });
    const { exited } = jail.launch({
      argv: () => ['/no/such/program'],
      mounts: [],
      env: () => ({}),
      limits: { files: 64 },
      tmpBytes: 1 << 20,
      stdio: ['ignore', 'ignore', 'ignore'],
      nestedNamespaces: false,
    });
    assert.is.not((await exited).code, 0);
  }
});

open("a jail does not receive signals to the runner's process group", async () => {
  for (const sandbox of LEVELS) {
    const jail = await openJail({ sandbox, log });
    const { child, exited, kill } = jail.launch({
      argv: (at) => [at('/bin/node'), '-e', 'setInterval(() => {}, 1e6)'],
      mounts: node,
      env: () => ({}),
      limits: { files: 256 },
      tmpBytes: 1 << 20,
      stdio: ['ignore', 'ignore', 'ignore'],
      nestedNamespaces: false,
    });
    const one = processes().find(({ pid }) => pid === child.pid);
    kill();
    await exited;
    assert.is(one?.group, child.pid, sandbox);
  }
});

open.run();
