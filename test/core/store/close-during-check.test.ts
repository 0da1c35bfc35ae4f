/**
 * The end of a core that looks at its database for damage: a close waits for nothing and leaves no
 * log, and kill -9 leaves no process behind.
 */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, readdirSync, readFileSync, readlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import Sqlite from 'better-sqlite3';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { startCore } from '../../../core/main.ts';
import { openLog } from '../../../proto/common/log.ts';
import { until } from '../../support/poll.ts';
import { tempDirectory } from '../../support/temp.ts';
import { configOn } from '../boot.ts';

const test = suite('core/store/close-during-check');
const CHILD = fileURLToPath(new URL('./check-child.ts', import.meta.url));
const log = openLog({ role: 'core', level: 'silent' });
/** Ours: a close takes a second at most, of a machine that is busy some. */
const CLOSE_LIMIT_MS = 20_000;
/** Of processor time, in 10 ms: a quarter of that of the whole check. */
const TICKS = 100;
/** A table whose check takes four seconds: a millisecond to compute each row. */
const SLOW = `
  PRAGMA synchronous = OFF;
  CREATE TABLE slow (n INTEGER PRIMARY KEY, m TEXT NOT NULL AS (hex(zeroblob(1000000 + n))));
  WITH RECURSIVE count(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM count WHERE n < 4000)
  INSERT INTO slow SELECT n FROM count;`;

/** The processes that have the file open, each as often as it has. */
function openers(path: string): number[] {
  const pids = readdirSync('/proc').filter((name) => /^\d+$/.test(name));
  return pids.flatMap((pid) => {
    try {
      const links = readdirSync(`/proc/${pid}/fd`).map((fd) => linkOf(`/proc/${pid}/fd/${fd}`));
      return links.filter((link) => link === path).map(() => Number(pid));
    } catch {
      return []; // it has ended, or is another user's
    }
  });
}

const openings = (path: string): number => openers(path).length;

/** The processor time that a process has taken; 0 when it has ended. */
function ticksOf(pid: number): number {
  try {
    // behind the name, which may hold blanks: state, ten more, utime, stime
    const [, rest = ''] = readFileSync(`/proc/${pid}/stat`, 'utf8').split(') ');
    const [user, system] = rest.split(' ').slice(11);
    return Number(user) + Number(system);
  } catch {
    return 0;
  }
}

/** A database with a slow check, in a new data directory, as after an unclean end. */
async function fill(dir: string): Promise<{ path: string; own: number }> {
  const path = join(dir, 'tabern.db');
  const first = await startCore(configOn(dir), log);
  const own = openings(path);
  await first.close();
  const db = new Sqlite(path);
  db.exec(SLOW);
  db.close();
  writeFileSync(`${path}-wal`, '');
  return { path, own };
}

function linkOf(fd: string): string {
  try {
    return readlinkSync(fd);
  } catch {
    return '';
  }
}

test('a close ends the check, and the database is closed cleanly', async () => {
  await using dir = tempDirectory();
  const { path, own } = await fill(dir.path);
  const config = configOn(dir.path);
  const core = await startCore(config, log, { onFatal: () => assert.unreachable('damage') });
  await until(() => openings(path) > own, undefined, 1);
  const closingAt = performance.now();
  await core.close();
  const tookMs = performance.now() - closingAt;
  assert.ok(tookMs < CLOSE_LIMIT_MS, `${tookMs} ms`);
  assert.not.ok(existsSync(`${path}-wal`), 'the log was taken into the database');
  assert.is(openings(path), 0);
});

test('kill -9 of a core ends its check', async () => {
  await using dir = tempDirectory();
  const { path } = await fill(dir.path);
  const core = spawn(process.execPath, [CHILD, dir.path], { stdio: 'inherit' });
  const pid = core.pid ?? 0;
  const checks = () => openers(path).filter((one) => one !== pid);
  await until(() => checks().length > 0, undefined, 1);
  const [check = 0] = checks();
  process.kill(check, 'SIGSTOP'); // so that it cannot have come to its own end
  core.kill('SIGKILL');
  await once(core, 'exit');
  assert.equal(checks(), [check], 'the check was under way');
  const before = ticksOf(check);
  process.kill(check, 'SIGCONT');
  const hasWorked = () => ticksOf(check) > before + TICKS;
  await until(() => checks().length === 0 || hasWorked(), undefined, 1);
  assert.equal(checks(), [], 'the check goes on');
});

test.run();
