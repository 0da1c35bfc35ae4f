/** kill -9 loses nothing that was acknowledged: at named points, and at a random moment. */
import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import Sqlite from 'better-sqlite3';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { openStore } from '../../../core/store/thread.ts';
import { tempDirectory } from '../../support/temp.ts';
import { ENGINES, openBench, T0 } from './engines.ts';

const test = suite('core/store/crash');
const CHILD = fileURLToPath(new URL('./crash-child.ts', import.meta.url));

/** The ids that a child acknowledged before it was killed. */
async function acknowledged(args: string[], killAtCount: number): Promise<string[]> {
  const child = spawn(process.execPath, [CHILD, ...args], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  let text = '';
  child.stdout.on('data', (chunk: Buffer) => {
    text += chunk;
    if (text.length > killAtCount * 37) child.kill('SIGKILL');
  });
  const [, signal] = await once(child, 'close');
  assert.is(signal, 'SIGKILL');
  // The bytes after the last line break are an incomplete line.
  return text.split('\n').slice(0, -1);
}

const POINTS = ['tx-begin:40', 'accept-invocation:200', 'before-commit:40', 'after-commit:40', ''];

for (const point of POINTS) {
  test(`killed at ${point || 'a moment of its own'}, all acknowledged rows are there`, async () => {
    const [engine] = ENGINES;
    if (!engine) throw new Error('no engine');
    await using bench = await openBench(engine);
    const projectId = await bench.project('p', 1_000_000);
    const { functionId, versionId } = await bench.publish(projectId);
    await bench.store.close();
    const args = [bench.dir, projectId, functionId, versionId, point];
    const ids = await acknowledged(args, point ? 1e9 : 300);
    // a transaction of a busy machine may hold no more than one
    assert.ok(ids.length > 20, `${ids.length} acknowledged`);

    const options = { dir: bench.dir, durability: 'full', onFatal: assert.unreachable } as const;
    const store = await openStore(options);
    for (const id of ids) {
      const row = await store.getInvocation({ id, projectId });
      assert.is(row?.status, 'PENDING');
      const session = await store.getSession({ id: row?.sessionId ?? '', projectId });
      assert.is(session?.status, 'PENDING');
    }
    await store.close();
    checkWhole(`${bench.dir}/tabern.db`, ids.length);
  });
}

test('a failing disk ends the process with 70 and loses nothing acknowledged', async () => {
  const [engine] = ENGINES;
  if (!engine) throw new Error('no engine');
  await using bench = await openBench(engine);
  const projectId = await bench.project('p', 1_000_000);
  const { functionId, versionId } = await bench.publish(projectId);
  await bench.store.close();
  // Files may grow to 2 MiB: a write past it fails as one on a broken disk does.
  const limited = 'trap "" XFSZ; ulimit -f 2048; exec "$0" "$@"';
  const args = [process.execPath, CHILD, bench.dir, projectId, functionId, versionId];
  const child = spawn('bash', ['-c', limited, ...args], { stdio: ['ignore', 'pipe', 'inherit'] });
  let text = '';
  child.stdout.on('data', (chunk: Buffer) => {
    text += chunk;
  });
  assert.equal(await once(child, 'close'), [70, null]);
  const ids = text.split('\n').slice(0, -1);
  assert.ok(ids.length > 100, `${ids.length} acknowledged`);
  const store = await engine.open(bench.dir);
  for (const id of ids) assert.ok(await store.getInvocation({ id, projectId }));
  await store.close();
  checkWhole(`${bench.dir}/tabern.db`, ids.length);
});

test('a full disk refuses writes only, and they succeed when there is room again', async () => {
  await using dir = tempDirectory();
  const child = fileURLToPath(new URL('../files/full-child.ts', import.meta.url));
  const script = 'mount -t tmpfs -o size=6m tmpfs "$1" && exec "$0" "$2" "$1"';
  const args = ['-rm', 'bash', '-c', script, process.execPath, dir.path, child];
  const { status, stdout, stderr } = spawnSync('unshare', args, { encoding: 'utf8' });
  assert.is(status, 0, stderr);
  assert.equal(JSON.parse(stdout), { reason: 'STORAGE_FULL', whileFull: 0, after: 0 });
});

/** No partial write: each row has its partner, and the counters equal the counts. */
function checkWhole(path: string, atLeast: number): void {
  const db = new Sqlite(path, { readonly: true });
  const one = (sql: string) => db.prepare<[], number>(sql).pluck().get();
  assert.is(db.pragma('integrity_check', { simple: true }), 'ok');
  const rows = one('SELECT COUNT(*) FROM invocations') ?? 0;
  assert.ok(rows >= atLeast);
  assert.is(one('SELECT COUNT(*) FROM sessions'), rows);
  assert.is(one("SELECT COUNT(*) FROM jobs WHERE state = 'ready'"), rows);
  assert.is(one("SELECT ready FROM queues WHERE kind = 'invocation'"), rows);
  assert.is(one(`SELECT COUNT(*) FROM jobs WHERE created_at < ${T0}`), 0);
  db.close();
}

test.run();
