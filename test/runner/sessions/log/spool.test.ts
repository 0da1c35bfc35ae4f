/** Chunks of a log wait on disk in their order, within the limits, and leave no file behind. */
import { execFileSync } from 'node:child_process';
import { mkdirSync, readdirSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { must } from '../../../../proto/common/must.ts';
import { openShares, type Shares } from '../../../../proto/sharing/shares.ts';
import { findProgram } from '../../../../runner/jail/prlimit.ts';
import { sweepRuns } from '../../../../runner/machine/stale-runs.ts';
import { RESERVED_BYTES, Spool } from '../../../../runner/sessions/log/spool.ts';
import { testRunner } from '../../../support/runner/lease.ts';
import { tempDirectory } from '../../../support/temp.ts';

const test = suite('runner/sessions/log/spool');
const MIB = 1 << 20;
/** Of one chunk. */
const BYTES = 4_096;

type Given = {
  runDir: string;
  projectId?: string;
  space?: Shares;
  maxBytes?: number;
  /** Chunks that can be made. */
  due?: number;
};

/** A spool of chunks of two entries; the text of each has its number. */
function openBench({ runDir, projectId = 'p', space = openShares(99 * MIB), ...given }: Given) {
  const lost: number[] = [];
  const warned: string[] = [];
  const bench = { due: given.due ?? 0, made: 0 };
  const log = { warn: (_: unknown, message: string) => void warned.push(message) };
  const spool = new Spool({
    runDir,
    projectId,
    space,
    log: Object.assign(Object.create(testRunner().log), log),
    make() {
      bench.due -= 1;
      bench.made += 1;
      const entries = Buffer.from(`${bench.made}`.padEnd(BYTES));
      return { count: 2, packed: Promise.resolve({ entries, size: MIB }) };
    },
    onLost: (count) => void lost.push(count),
    ...(given.maxBytes === undefined ? {} : { maxBytes: given.maxBytes }),
  });
  return {
    bench,
    spool,
    lost,
    warned,
    fill: () => spool.fill(() => bench.due > 0),
    /** The number of the next chunk. */
    async next(): Promise<number> {
      const { entries, count, size } = await spool.next();
      assert.equal([entries.length, count, size], [BYTES, 2, MIB]);
      return Number(entries.toString());
    },
  };
}

const filesOf = (runDir: string): string[] =>
  readdirSync(runDir).flatMap((dir) => readdirSync(join(runDir, dir)));

test('without a stored chunk one is made, and nothing is on disk', async () => {
  await using dir = tempDirectory();
  const { next, fill, spool } = openBench({ runDir: dir.path });
  assert.is(await next(), 1);
  await fill();
  assert.is(await next(), 2);
  assert.is(spool.count, 0);
  assert.equal(readdirSync(dir.path), []);
  await spool.close();
});

test('chunks are taken in the order in which they were made', async () => {
  await using dir = tempDirectory();
  const { next, fill, spool, bench } = openBench({ runDir: dir.path, due: 3 });
  await fill();
  assert.is(spool.count, 6);
  assert.is(filesOf(dir.path).length, 3);
  assert.is(await next(), 1);
  bench.due = 1;
  await fill();
  assert.equal([await next(), await next(), await next(), await next()], [2, 3, 4, 5]);
  assert.is(spool.count, 0);
  assert.equal(filesOf(dir.path), []);
  await spool.close();
});

test('a chunk that is being stored is counted, and comes before a newer one', async () => {
  await using dir = tempDirectory();
  const { next, fill, spool } = openBench({ runDir: dir.path, due: 2 });
  const filling = fill();
  const taken = Promise.all([next(), next(), next()]);
  await spool.fill(() => assert.unreachable('it is filled already') as never);
  assert.equal(await taken, [1, 2, 3]);
  await filling;
  assert.is(spool.count, 0);
  await spool.close();
});

test('a session stores up to its limit, and goes on when there is room again', async () => {
  await using dir = tempDirectory();
  const given = { runDir: dir.path, due: 9, maxBytes: 3 * MIB };
  const { next, fill, spool, bench } = openBench(given);
  await fill();
  assert.is(bench.made, 3);
  assert.is(await next(), 1);
  await fill();
  assert.is(bench.made, 4);
  assert.equal([await next(), await next(), await next()], [2, 3, 4]);
  await spool.close();
});

test('a project leaves room for another one, and gets the room back that it leaves', async () => {
  await using dir = tempDirectory();
  const space = openShares(4 * RESERVED_BYTES);
  const own = { runDir: dir.path, space, due: 2_000, maxBytes: Infinity };
  const first = openBench({ ...own, projectId: 'first' });
  const same = openBench({ ...own, projectId: 'first' });
  const other = openBench({ ...own, projectId: 'other' });
  await first.fill();
  const half = (2 * RESERVED_BYTES) / BYTES;
  const held = space.heldBy('first');
  assert.is(held, first.bench.made * BYTES);
  assert.ok(first.bench.made < half && first.bench.made > 200, `${first.bench.made} chunks`);
  await same.fill();
  assert.is(same.bench.made, 0);
  await other.fill();
  assert.ok(other.bench.made > 100, `${other.bench.made} chunks`);
  await first.spool.close();
  assert.is(space.heldBy('first'), 0);
  await same.fill();
  assert.ok(same.bench.made > 100, `${same.bench.made} chunks`);
  await Promise.all([same.spool.close(), other.spool.close()]);
  assert.is(space.heldBy('other'), 0);
});

test('a close removes everything, while chunks are stored too, and frees the room', async () => {
  await using dir = tempDirectory();
  const space = openShares(99 * MIB);
  const { fill, spool, bench } = openBench({ runDir: dir.path, space, due: 2 });
  await fill();
  bench.due = 5;
  const filling = fill();
  await spool.close();
  await filling;
  assert.equal(readdirSync(dir.path), []);
  assert.equal([spool.count, space.heldBy('p')], [0, 0]);
  const { made } = bench;
  await fill();
  assert.is(bench.made, made);
  assert.equal(readdirSync(dir.path), []);
});

/** Makes writes to this directory fail until it is disposed of. */
const BROKEN: Record<string, (runDir: string) => Disposable> = {
  'a directory that was removed'(runDir) {
    rmSync(runDir, { recursive: true });
    return { [Symbol.dispose]: () => void mkdirSync(runDir) };
  },
  'a file that cannot be written whole'() {
    const limit = (bytes: string) => {
      const args = ['--pid', String(process.pid), `--fsize=${bytes}:`];
      execFileSync(must(findProgram('prlimit'), 'prlimit'), args);
    };
    limit(String(BYTES / 2));
    return { [Symbol.dispose]: () => limit('unlimited') };
  },
};

for (const [what, broken] of Object.entries(BROKEN)) {
  test(`${what} loses nothing, is reported once, and ends the use of the disk`, async () => {
    await using dir = tempDirectory();
    const space = openShares(99 * MIB);
    const given = { runDir: dir.path, space, due: 9 };
    const { fill, next, spool, bench, lost, warned } = openBench(given);
    {
      using _broken = broken(dir.path);
      await fill();
      await fill();
    }
    await fill();
    assert.is(bench.made, 1, 'one chunk in memory');
    assert.equal([spool.count, space.heldBy('p')], [2, 0]);
    assert.equal(warned, ['a log cannot wait on the disk']);
    assert.equal(filesOf(dir.path), []);
    assert.equal([await next(), await next()], [1, 2]);
    assert.equal(lost, []);
    await spool.close();
  });
}

test('a chunk that cannot be read is reported as lost, and the next one follows', async () => {
  await using dir = tempDirectory();
  const space = openShares(99 * MIB);
  const { fill, next, spool, lost } = openBench({ runDir: dir.path, space, due: 2 });
  await fill();
  const [own = ''] = readdirSync(dir.path);
  rmSync(join(dir.path, own, must(filesOf(dir.path).sort()[0], 'a file')));
  assert.equal([await next(), await next()], [2, 3]);
  assert.equal(lost, [2]);
  assert.equal([spool.count, space.heldBy('p')], [0, 0]);
  await spool.close();
});

test('a file that cannot be removed counts until the close has removed it', async () => {
  await using dir = tempDirectory();
  const space = openShares(99 * MIB);
  const { fill, next, spool, lost } = openBench({ runDir: dir.path, space, due: 2 });
  await fill();
  const [own = ''] = readdirSync(dir.path);
  const file = join(dir.path, own, must(filesOf(dir.path).sort()[0], 'a file'));
  rmSync(file);
  mkdirSync(file); // neither read nor removed as a file
  assert.is(await next(), 2);
  assert.equal([lost, space.heldBy('p')], [[2], BYTES]);
  await spool.close();
  assert.equal([readdirSync(dir.path), space.heldBy('p')], [[], 0]);
});

test('what a killed runner has left is removed when a runner starts', async () => {
  await using root = tempDirectory();
  const runDir = join(root.path, `${process.pid}-1`); // of another process with this id
  mkdirSync(runDir);
  await openBench({ runDir, due: 2 }).fill();
  assert.is(filesOf(runDir).length, 2);
  assert.equal(await sweepRuns(root.path), [runDir]);
  assert.equal(readdirSync(root.path), []);
});

test.run();
