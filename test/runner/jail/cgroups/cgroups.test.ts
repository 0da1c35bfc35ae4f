/**
 * The cgroup that the service may divide, the limits of a jail's group, and how a jail joins it. On
 * directories with the kernel's file names: few machines give a test a subtree.
 */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import {
  closeSync,
  existsSync,
  mkdirSync,
  openSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { openLog } from '../../../../proto/common/log.ts';
import { filesOf, type Groups, openGroups } from '../../../../runner/jail/cgroups/cgroups.ts';
import { findSubtree } from '../../../../runner/jail/cgroups/delegated-subtree.ts';
import type { Jail, JailSpec } from '../../../../runner/jail/jail.ts';
import { withMemoryLimit } from '../../../../runner/jail/memory-limit.ts';
import { openJail } from '../../../../runner/jail/open.ts';
import { programMounts } from '../../../../runner/jail/program-mounts.ts';
import { tempDirectory } from '../../../support/temp.ts';

const test = suite('runner/jail/cgroups/cgroups');
const log = openLog({ role: 'test', level: 'silent' });
const ALL = ['memory', 'pids', 'cpu'] as const;
const USER = 1000;

type Scene = {
  /** The process's path in /proc/self/cgroup, and the root of the mount. */
  path?: string;
  root?: string;
  /** Of the cgroup; undefined: no such file. */
  files?: Record<string, string | undefined>;
};

/** A process in the cgroup `/given` of a tree that is mounted as a directory. */
function openTree({ path = '/given', root = '/', files = {} }: Scene = {}) {
  const temp = tempDirectory();
  const dir = join(temp.path, 'mount', 'given');
  mkdirSync(dir, { recursive: true });
  const all = {
    'cgroup.type': 'domain\n',
    'cgroup.procs': `${process.pid}\n`,
    'cgroup.subtree_control': '',
    'cgroup.controllers': 'cpuset cpu io memory pids\n',
    ...files,
  };
  for (const [name, text] of Object.entries(all)) {
    if (text !== undefined) writeFileSync(join(dir, name), text);
  }
  writeFileSync(join(temp.path, 'cgroup'), `4:memory:/elsewhere\n0::${path}\n`);
  const point = path === '/' || path === '/service' ? dir : join(temp.path, 'mount');
  const mounts = [
    `25 30 0:22 / /sys rw - sysfs sysfs rw`,
    `31 25 0:27 ${root} ${point} rw,nosuid shared:9 - cgroup2 cgroup2 rw`,
  ];
  writeFileSync(join(temp.path, 'mountinfo'), `${mounts.join('\n')}\n`);
  return {
    dir,
    find: (uid = USER) => findSubtree(temp.path, uid),
    has: (file: string) => readFileSync(join(dir, file), 'utf8'),
    [Symbol.asyncDispose]: () => temp[Symbol.asyncDispose](),
  };
}

test('a writable cgroup with the service alone is divided', async () => {
  await using tree = openTree();
  assert.equal(tree.find(), { dir: tree.dir, controllers: ALL });
  await using divided = openTree({ path: '/given/service', files: { 'cgroup.procs': '' } });
  assert.equal(divided.find(), { dir: divided.dir, controllers: ALL }, 'after a restart');
  await using part = openTree({ files: { 'cgroup.controllers': 'pids\n' } });
  assert.equal(part.find(), { dir: part.dir, controllers: ['pids'] });
});

test('the root of a cgroup namespace is divided, whatever processes are in it', async () => {
  const files = { 'cgroup.procs': `1\n${process.pid}\n` };
  for (const path of ['/', '/service']) {
    await using tree = openTree({ path, files });
    assert.equal(tree.find(0), { dir: tree.dir, controllers: ALL }, path);
  }
});

test('other cgroups are not divided, and the reason is returned', async () => {
  const expected: [Scene, RegExp, number?][] = [
    [{ root: '/other' }, /not mounted/],
    [{ root: '/give' }, /not mounted/],
    [{ files: { 'cgroup.type': undefined } }, /root of all cgroups/],
    [{}, /root cannot tell/, 0],
    [{ files: { 'cgroup.subtree_control': undefined } }, /not writable .*Delegate=yes/],
    [{ files: { 'cgroup.controllers': '\n' } }, /no controllers/],
    [{ files: { 'cgroup.procs': `1\n${process.pid}\n` } }, /others are in/],
  ];
  for (const [scene, why, uid] of expected) {
    await using tree = openTree(scene);
    const found = tree.find(uid);
    assert.match('why' in found ? found.why : 'it is taken', why);
    const before = readFileSync('/proc/self/cgroup', 'utf8');
    assert.is(
      await openGroups({ owner: '5-5', isAlive: async () => true, log, subtree: found }),
      found,
    );
    assert.is(readFileSync('/proc/self/cgroup', 'utf8'), before);
    assert.not.ok(existsSync(join(tree.dir, 'service')));
  }
});

test("the service moves to a leaf, and a jail's group has its limits", async () => {
  await using tree = openTree();
  const isAlive = async () => true;
  const subtree = { dir: tree.dir, controllers: [...ALL] };
  const groups = await openGroups({ owner: '5-5', isAlive, log, subtree });
  assert.not('why' in groups, 'it is divided');
  assert.is(tree.has('service/cgroup.procs'), String(process.pid));
  assert.is(tree.has('service/cpu.weight'), '1000');
  const limits = { files: 1, memoryBytes: 1 << 20, processes: 7 };
  const group = (groups as Groups).open(limits);
  assert.is(tree.has('jail-5-5-1/memory.max'), String(1 << 20));
  assert.is(tree.has('jail-5-5-1/pids.max'), '7');
  group?.started();
  const events = (text: string) => writeFileSync(join(tree.dir, 'jail-5-5-1/memory.events'), text);
  for (const [text, isOver] of [
    ['low 0\nhigh 0\nmax 9\noom 0\noom_kill 0\n', false],
    ['low 0\nhigh 0\nmax 9\noom 0\noom_kill 3\n', false], // by another's limit
    ['low 0\nhigh 0\nmax 9\noom 1\noom_kill 3\noom_group_kill 1\n', true],
  ] as const) {
    events(text);
    assert.is(group?.isOverMemory(), isOver, text);
  }
});

test('limits are written for available controllers only', () => {
  const limits = { files: 1, memoryBytes: 5, processes: 6, nice: 10 };
  assert.equal(filesOf(limits, ALL), [
    ['memory.max', '5'],
    ['memory.oom.group', '1'],
    ['pids.max', '6'],
    ['cpu.weight.nice', '10'],
  ]);
  assert.equal(filesOf(limits, ['pids']), [['pids.max', '6']]);
  assert.equal(filesOf({ files: 1 }, ALL), []);
});

test('groups of a dead runner are removed with their processes; other groups stay', async () => {
  await using tree = openTree();
  const left = join(tree.dir, 'jail-1-1-3');
  for (const name of ['jail-1-1-2', 'jail-1-1-3', 'jail-9-9-1', 'jails']) {
    mkdirSync(join(tree.dir, name));
  }
  const child = spawn('sleep', ['600'], { stdio: 'ignore' });
  writeFileSync(join(left, 'cgroup.procs'), `${child.pid}\n`);
  // the kernel's directory is empty to rmdir without processes
  const exited = once(child, 'exit').then(([, signal]) => {
    rmSync(join(left, 'cgroup.procs'));
    return signal;
  });
  const subtree = { dir: tree.dir, controllers: [...ALL] };
  const isAlive = async (owner: string) => owner === '9-9';
  await openGroups({ owner: '5-5', isAlive, log, subtree });
  assert.is(await exited, 'SIGKILL');
  const there = ['jail-1-1-2', 'jail-1-1-3', 'jail-9-9-1', 'jails'];
  assert.equal(
    there.filter((name) => existsSync(join(tree.dir, name))),
    ['jail-9-9-1', 'jails'],
  );
});

for (const sandbox of ['bwrap', 'landlock', 'none'] as const) {
  test(`${sandbox}: a jail joins its group first, and keeps no descriptor`, async () => {
    await using dir = tempDirectory();
    const procs = join(dir.path, 'procs');
    const acts: string[] = [];
    const groups: Groups = {
      controllers: ALL,
      open(limits) {
        assert.is(limits.memoryBytes, 3 * 2 ** 30);
        const file = openSync(procs, 'w');
        return {
          procs: file,
          started: () => closeSync(file),
          isOverMemory: () => !acts.includes('ended'), // not available later
          end: async () => void acts.push('ended'),
        };
      },
    };
    const jail = await openJail({ sandbox, log, groups });
    const jailed = jail.launch({
      argv: (at) => [at('/bin/node'), '-e', SEEN],
      mounts: await programMounts(process.execPath, '/bin/node'),
      env: () => ({ OWN: '1' }),
      limits: { files: 256, memoryBytes: 3 * 2 ** 30 },
      tmpBytes: 1 << 20,
      stdio: ['ignore', 'pipe', 'inherit'],
      nestedNamespaces: false,
    });
    let said = '';
    jailed.child.stdout?.on('data', (bytes) => {
      said += bytes;
    });
    const closed = once(jailed.child, 'close');
    assert.is((await jailed.exited).code, 0);
    await closed;
    assert.is(readFileSync(procs, 'utf8'), '0\n');
    const { env, inherited } = JSON.parse(said);
    assert.is(env.OWN, '1');
    assert.not('PWD' in env && sandbox !== 'bwrap', JSON.stringify(env));
    assert.not(JSON.stringify(inherited).includes('procs'), JSON.stringify(inherited));
    assert.equal(acts, ['ended']);
    assert.is(jailed.exitReason?.(), 'it used more than 3072 MiB of memory');
  });
}

test('a failed launch closes and removes its group', () => {
  const acts: string[] = [];
  const group = {
    procs: 9,
    started: () => void acts.push('started'),
    isOverMemory: () => false,
    end: async () => void acts.push('ended'),
  };
  const failing: Jail = {
    level: 'none',
    hasOwnNetwork: false,
    hasUnixSockets: true,
    launch() {
      throw new Error('no uid is free');
    },
  };
  const jail = withMemoryLimit(failing, { controllers: ALL, open: () => group });
  const spec = { limits: { files: 1 } } as JailSpec;
  assert.throws(() => jail.launch(spec), /no uid is free/);
  assert.equal(acts.toSorted(), ['ended', 'started']);
});

/** The state of a process after its start. */
const SEEN = `const fs = require('node:fs'); const inherited = [];
for (let fd = 0; fd < 20; fd++) {
  try { fs.fstatSync(fd); inherited.push(fs.readlinkSync('/proc/self/fd/' + fd)); } catch {}
}
console.log(JSON.stringify({ env: process.env, inherited }));`;

test.run();
