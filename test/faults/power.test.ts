/**
 * power-loss: acknowledged invocations are on the disk, each with its event and its delivery.
 * `synchronous=NORMAL` lost 1,230 of these in 20 rounds (measured).
 */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { cpSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import Database from 'better-sqlite3';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { must } from '../../proto/common/must.ts';
import { ENGINES, openBench } from '../core/store/engines.ts';
import { bareStore } from '../support/core/bare-store.ts';
import { until } from '../support/poll.ts';
import { sized } from '../support/whole.ts';
import { hasDisks, openDisk } from './disk.ts';

const CHILD = fileURLToPath(new URL('../core/store/crash-child.ts', import.meta.url));
const ROUNDS = sized(1, 3);
/** In bytes of a line: a UUID and a line feed. */
const LINE_LENGTH = 37;
const ACKNOWLEDGED_MIN = 200;

const power = suite('power');

for (let round = 1; round <= ROUNDS && hasDisks(); round += 1) {
  power(`power-loss: ${round}: acknowledged work is stored, with its event`, async () => {
    await using bench = await openBench(must(ENGINES[0], 'engine'));
    const projectId = await bench.project('p', 1_000_000);
    const { functionId, versionId } = await bench.publish(projectId);
    await bench.listen(projectId);
    await bench.store.close();
    await using disk = openDisk();
    const dir = join(disk.path, 'data');
    cpSync(bench.dir, dir, { recursive: true });
    disk.sync();
    const args = [CHILD, dir, projectId, functionId, versionId];
    const child = spawn(process.execPath, args, { stdio: ['ignore', 'pipe', 'ignore'] });
    // Ends before the disk, also after a failure: a disk in use cannot be unmounted.
    await using _ = { [Symbol.asyncDispose]: () => ended(child) };
    let text = '';
    child.stdout.on('data', (chunk: Buffer) => {
      text += chunk;
    });
    await until(() => text.length > ACKNOWLEDGED_MIN * LINE_LENGTH * round);
    // Later lines may be about a disk without power.
    const ids = text.split('\n').slice(0, -1);
    disk.losePower();
    await ended(child);
    disk.mountAgain();
    assert.equal(lostOf(dir, ids), []);
  });
}

// Also without such a disk.
power('power-loss: a commit waits for the disk', async () => {
  await using bare = bareStore('full');
  assert.is(bare.db.pragma('synchronous', { simple: true }), 2, 'FULL');
  assert.is(bare.db.pragma('journal_mode', { simple: true }), 'wal');
});

power.run();

async function ended(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return;
  child.kill('SIGKILL');
  await once(child, 'close');
}

/** The errors of the database: damage, and missing ids of these. */
function lostOf(dir: string, ids: readonly string[]): string[] {
  const db = new Database(join(dir, 'tabern.db'));
  try {
    const whole = db.prepare<[string], number>(`
      SELECT 1 FROM invocations
        JOIN events ON events.resource_id = invocations.id
        JOIN deliveries ON deliveries.event_id = events.id
      WHERE invocations.id = ?`);
    const halves = db
      .prepare<[], string>(`
        SELECT id FROM invocations
        WHERE NOT EXISTS (
          SELECT 1 FROM events JOIN deliveries ON deliveries.event_id = events.id
          WHERE resource_id = invocations.id)`)
      .pluck()
      .all();
    const check = String(db.pragma('integrity_check', { simple: true }));
    return [
      ...(check === 'ok' ? [] : [check]),
      ...ids.filter((id) => whole.get(id) === undefined).map((id) => `${id} was lost`),
      ...halves.map((id) => `${id} has no delivery`),
    ];
  } finally {
    db.close();
  }
}
