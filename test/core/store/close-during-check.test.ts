/** A close while the database is looked at for damage: it waits for nothing, and leaves no log. */
import { existsSync, readdirSync, readlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import Sqlite from 'better-sqlite3';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { readCoreConfig } from '../../../core/config.ts';
import { startCore } from '../../../core/main.ts';
import { openLog } from '../../../proto/common/log.ts';
import { until } from '../../support/poll.ts';
import { tempDirectory } from '../../support/temp.ts';

const test = suite('core/store/close-during-check');
const log = openLog({ role: 'core', level: 'silent' });
/** Ours: a close takes a second at most, of a machine that is busy some. */
const CLOSE_LIMIT_MS = 20_000;
/** Whose check takes a second, from its opening on. */
const LARGE = `
  PRAGMA synchronous = OFF;
  CREATE TABLE large (n INTEGER PRIMARY KEY);
  WITH RECURSIVE count(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM count WHERE n < 10000000)
  INSERT INTO large SELECT n FROM count;`;

/** How often any process has the file open. */
function openings(path: string): number {
  const fds = readdirSync('/proc').filter((name) => /^\d+$/.test(name));
  const links = fds.flatMap((pid) => {
    try {
      return readdirSync(`/proc/${pid}/fd`).map((fd) => linkOf(`/proc/${pid}/fd/${fd}`));
    } catch {
      return []; // it has ended, or is another user's
    }
  });
  return links.filter((link) => link === path).length;
}

function linkOf(fd: string): string {
  try {
    return readlinkSync(fd);
  } catch {
    return '';
  }
}

test('a close ends the check, and the database is left as after any clean end', async () => {
  await using dir = tempDirectory();
  const config = readCoreConfig({ TABERN_DATA: dir.path });
  const path = join(dir.path, 'tabern.db');
  const first = await startCore(config, log);
  const own = openings(path);
  await first.close();
  const db = new Sqlite(path);
  db.exec(LARGE);
  db.close();
  writeFileSync(`${path}-wal`, ''); // as after an end that was not clean
  const core = await startCore(config, log, { onFatal: () => assert.unreachable('damage') });
  await until(() => openings(path) > own, undefined, 1);
  const closingAt = performance.now();
  await core.close();
  const tookMs = performance.now() - closingAt;
  assert.ok(tookMs < CLOSE_LIMIT_MS, `${tookMs} ms`);
  assert.not.ok(existsSync(`${path}-wal`), 'the log was taken into the database');
  assert.is(openings(path), 0);
});

test.run();
