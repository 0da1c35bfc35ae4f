/** The memory of a process tree is measured with its descendants, and an excess reported once. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import {
  memoryOf,
  memoryOfTrees,
  watchMemory,
} from '../../../../runner/jail/cgroups/memory-watch.ts';

const test = suite('runner/jail/cgroups/memory-watch');
const TAKEN = 128 << 20;

/** A process whose child, started by a thread, takes memory on demand. */
async function openTree(isByThread = false) {
  const taker = `process.stdin.once('data', () => {
    globalThis.kept = Buffer.alloc(${TAKEN}, 1); console.log('taken'); }); console.log('here')`;
  const starter = (script: string): string =>
    `require('child_process').spawn(process.execPath, ['-e', ${script}],
    { stdio: 'inherit' }).on('exit', () => process.exit(0))`;
  const inThread = starter("require('worker_threads').workerData");
  const thread = `new worker_threads.Worker(${JSON.stringify(inThread)},
    { eval: true, workerData: process.argv[1] })`;
  const child = spawn(
    process.execPath,
    ['-e', isByThread ? thread : starter('process.argv[1]'), taker],
    {
      stdio: ['pipe', 'pipe', 'inherit'],
    },
  );
  await once(child.stdout, 'data');
  return {
    pid: child.pid ?? 0,
    async take() {
      child.stdin.write('x');
      await once(child.stdout, 'data');
    },
    async [Symbol.asyncDispose]() {
      const exited = once(child, 'exit');
      child.stdin.destroy(); // the last that keeps it
      await exited;
    },
  };
}

test('memory of descendants counts', async () => {
  await using tree = await openTree();
  const before = memoryOf(tree.pid);
  assert.ok(before > 0);
  await tree.take();
  assert.ok(memoryOf(tree.pid) - before > TAKEN * 0.9, `${memoryOf(tree.pid)} after ${before}`);
});

test('memory of processes that a thread has started counts', async () => {
  await using byThread = await openTree(true);
  await using quiet = await openTree();
  const roots = [byThread.pid, quiet.pid];
  const before = memoryOfTrees(roots);
  await byThread.take();
  const after = memoryOfTrees(roots);
  const [grown = 0, same = 0] = roots.map((pid) => (after.get(pid) ?? 0) - (before.get(pid) ?? 0));
  assert.ok(grown > TAKEN * 0.9, String(grown));
  assert.ok(Number(before.get(quiet.pid)) > 0 && same < TAKEN / 2, String(same));
});

test('onOver is called once for a tree above its limit, and for no other', async () => {
  await using tree = await openTree();
  const maxBytes = memoryOf(tree.pid) + TAKEN / 2;
  const told: number[] = [];
  const over = Promise.withResolvers<void>();
  using _quiet = watchMemory({
    pid: tree.pid,
    maxBytes: maxBytes + 2 * TAKEN,
    onOver: () => told.push(-1),
  });
  using _watch = watchMemory({
    pid: tree.pid,
    maxBytes,
    onOver(bytes) {
      told.push(bytes);
      over.resolve();
    },
  });
  const alive = setInterval(() => undefined, 1_000); // a watch keeps nothing alive
  await tree.take();
  await over.promise;
  clearInterval(alive);
  assert.is(told.length, 1);
  assert.ok(Number(told[0]) > maxBytes);
});

test('a process that has ended uses no memory', () => {
  assert.is(memoryOf(2 ** 22), 0);
  assert.equal([...memoryOfTrees([2 ** 22])], [[2 ** 22, 0]]);
});

test.run();
