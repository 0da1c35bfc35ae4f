/**
 * Tests of core that are about SQLite's own files. Where TABERN_TEST_DATABASE names another engine,
 * they are skipped by these names, each with its reason. A name that no test has is red.
 */
import { relative, resolve } from 'node:path';

const TESTS = resolve(import.meta.dirname, '../..');
const isOther = (process.env['TABERN_TEST_DATABASE'] ?? '') !== '';

/** `tests`: their titles; absent for a whole file. */
type Skip = { file: string; reason: string; tests?: readonly string[] };

const BACKUP = 'a backup copies the file of SQLite; that of PostgreSQL is by pg_dump';
const ORDER = 'two calls at once are in the order of the thread of SQLite';

const ONLY_SQLITE: readonly Skip[] = [
  {
    file: 'core/api/idle',
    reason: 'it watches the messages to the thread of SQLite',
  },
  {
    file: 'core/backup/backup',
    reason: BACKUP,
  },
  {
    file: 'core/files/disk-space',
    reason: 'the disk that fills is that of the file of SQLite',
    tests: ['on a full disk running work ends and new work is refused, until there is space'],
  },
  {
    file: 'core/files/s3',
    reason: BACKUP,
    tests: ['a backup names the bucket, and a restored directory needs it'],
  },
  {
    file: 'core/functions/waits',
    reason: ORDER,
    tests: ['closing core ends waiting calls with the current state'],
  },
  {
    file: 'core/functions/deletion',
    reason: ORDER,
    tests: ['a call that waits for an invocation ends with 404 when its function is deleted'],
  },
  {
    file: 'core/functions/schedules',
    reason: 'stored times are moved in SQLite alone: the clock is that of the server',
    tests: ['a clock that is set back computes the next time again, and starts nothing'],
  },
  {
    file: 'core/main',
    reason: 'it is the file of SQLite that is locked and has a version',
    tests: [
      'another process is refused while one runs on the directory',
      'a data directory of a newer version is refused',
    ],
  },
  {
    file: 'core/maintenance/doctor',
    reason: 'it damages the file of SQLite',
    tests: ['a damaged database is found, with the fix to restore'],
  },
  {
    file: 'core/maintenance/move',
    reason: 'only files beside the file of SQLite are moved to a bucket',
  },
  {
    file: 'core/projects/audit',
    reason: BACKUP,
    tests: ['a backup is an event, and one that its reader leaves was cancelled'],
  },
  {
    file: 'core/projects/operator-logins',
    reason: BACKUP,
    tests: ['an operator login makes no other login and takes no master key'],
  },
];

/** Whether the whole file is skipped. */
export function isSkipped(file: string): boolean {
  return skipsIn(file).some(({ tests }) => tests === undefined);
}

/** The titles of its tests that are skipped. */
export function testSkips(file: string): Set<string> {
  return new Set(skipsIn(file).flatMap(({ tests = [] }) => tests));
}

/** What is skipped in the file. */
export function skipsIn(file: string): Skip[] {
  const name = relative(TESTS, resolve(file)).replace(/\.test\.ts$/, '');
  return isOther ? ONLY_SQLITE.filter((skip) => skip.file === name) : [];
}
