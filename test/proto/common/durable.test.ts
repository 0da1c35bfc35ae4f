/** Small files that several processes create at once. */
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { Worker } from 'node:worker_threads';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { tempDirectory } from '../../support/temp.ts';

const test = suite('proto/common/durable');
const MODULE = new URL('../../../proto/common/durable.ts', import.meta.url).href;
const WRITERS = 2;
const FILES = 60;

/** Creates every file at the same time as the other writer; reports those that it created. */
const WRITER = `
const { parentPort, workerData } = require('node:worker_threads');
import(workerData.module).then(({ createFile }) => {
  const { dir, files, gate, writers, self } = workerData;
  const arrived = new Int32Array(gate);
  const created = [];
  for (let at = 0; at < files; at += 1) {
    Atomics.add(arrived, 0, 1);
    while (Atomics.load(arrived, 0) < writers * (at + 1));
    try {
      createFile(dir + '/' + at, self);
      created.push(at);
    } catch (error) {
      if (error.code !== 'EEXIST') throw error;
    }
  }
  parentPort.postMessage(created);
});
`;

test('of two writers at once, the one that creates a file has its text in it', async () => {
  await using dir = tempDirectory();
  const gate = new SharedArrayBuffer(4);
  const names = ['a', 'b'].slice(0, WRITERS);
  const workers = names.map((self) => {
    const shared = { module: MODULE, dir: dir.path, files: FILES, gate, writers: WRITERS };
    return new Worker(WRITER, { eval: true, workerData: { ...shared, self } });
  });
  await using stack = new AsyncDisposableStack();
  for (const worker of workers) stack.defer(async () => void (await worker.terminate()));
  const made = await Promise.all(
    workers.map((worker) => {
      const { promise, resolve, reject } = Promise.withResolvers<number[]>();
      worker.once('message', resolve).once('error', reject);
      return promise;
    }),
  );
  const all = made.flat().sort((one, other) => one - other);
  assert.equal(all, [...Array(FILES).keys()], 'each file has one creator');
  for (const [at, self] of names.entries()) {
    for (const file of made[at] ?? []) {
      assert.is(readFileSync(join(dir.path, String(file)), 'utf8'), self);
    }
  }
  assert.is(readdirSync(dir.path).length, FILES, 'no temporary file remains');
});

test.run();
