/** kill -9 during a session: each step is stored completely or not at all. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import Sqlite from 'better-sqlite3';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { must } from '../../../proto/common/must.ts';
import { ENGINES, openBench } from '../store/engines.ts';

const test = suite('core/sessions/crash');
const CHILD = fileURLToPath(new URL('./crash-child.ts', import.meta.url));
const STEPS = ['PENDING', 'RUNNING', 'COMPLETED'];

/** The last acknowledged step of each session. */
async function acknowledged(args: string[]): Promise<Map<string, string>> {
  const stdio = ['ignore', 'pipe', 'inherit'] as const;
  const child = spawn(process.execPath, [CHILD, ...args], { stdio: [...stdio] });
  let text = '';
  child.stdout?.on('data', (chunk: Buffer) => {
    text += chunk;
  });
  const [, signal] = await once(child, 'close');
  assert.is(signal, 'SIGKILL');
  const lines = text.split('\n').slice(0, -1);
  return new Map(lines.map((line) => line.split(' ').reverse() as [string, string]));
}

const POINTS = ['create-session', 'start-session', 'release-session', 'end-session'];
const MOMENTS = ['before-commit:30', 'after-commit:30'];

for (const point of [...POINTS.map((name) => `${name}:7`), ...MOMENTS]) {
  test(`killed at ${point}, sessions have their acknowledged states`, async () => {
    const engine = must(ENGINES[0], 'engine');
    await using bench = await openBench(engine);
    const projectId = await bench.project('p', 1);
    await bench.store.close();
    const said = await acknowledged([bench.dir, projectId, point]);
    assert.ok(said.size >= 6, `${said.size} sessions`);

    const store = await engine.open(bench.dir);
    await store.recoverWork({ at: Date.now(), leaseMs: 15_000 });
    for (const [id, step] of said) {
      const row = must(await store.getSession({ id, projectId }), 'an acknowledged session');
      assert.ok(STEPS.indexOf(row.status) >= STEPS.indexOf(step), `${row.status} after ${step}`);
      assert.is(row.endedAt === null, row.status !== 'COMPLETED');
    }
    await store.close();
    checkWhole(`${bench.dir}/tabern.db`);
  });
}

/** Each live session has one job and its metadata; an ended one has no job. */
function checkWhole(path: string): void {
  const db = new Sqlite(path, { readonly: true });
  const one = (sql: string) => db.prepare<[], number>(sql).pluck().get();
  assert.is(db.pragma('integrity_check', { simple: true }), 'ok');
  const live = `SELECT id FROM sessions WHERE status IN ('PENDING', 'RUNNING')`;
  assert.is(one(`SELECT COUNT(*) FROM jobs WHERE id NOT IN (${live})`), 0);
  assert.is(one('SELECT COUNT(*) FROM jobs'), one(`SELECT COUNT(*) FROM (${live})`));
  const sessions = one('SELECT COUNT(*) FROM sessions');
  assert.is(one('SELECT COUNT(*) FROM session_metadata'), sessions);
  const counted = `SELECT ready + running FROM queues WHERE kind = 'session'`;
  assert.is(one(counted), one('SELECT COUNT(*) FROM jobs'));
  db.close();
}

test.run();
