/**
 * Migrations: schema/NNNN_name.sql, run in order of their numbers, forward only, each in one
 * transaction that also records it, under a lock of the database: of several cores that start, one
 * migrates. A database may be one migration ahead of this version, so that two versions can run
 * during a roll-out; a migration therefore only adds what the version before it does not read.
 */
import { readdirSync, readFileSync } from 'node:fs';
import { ConfigError } from '../../../../proto/common/env.ts';
import type { Connection } from './connection.ts';
import { LOCKS } from './locks.ts';

const FOLDER = new URL('../schema/', import.meta.url);
/** Migrations that a database may have beyond this version's. */
const AHEAD_MAX = 1;
/** As server_version_num. */
const VERSION_MIN = 150_000;

export async function migrate(connection: Connection): Promise<void> {
  await checkServer(connection);
  await connection.send('SELECT pg_advisory_lock($1)', [LOCKS.migrations]);
  try {
    await connection.command(`
      CREATE TABLE IF NOT EXISTS migrations (number INTEGER PRIMARY KEY, name TEXT NOT NULL)`);
    const done = await doneIn(connection);
    if (isAhead(done)) {
      throw new ConfigError(
        'the database of TABERN_DATABASE_URL was written by a newer tabern; run that one',
      );
    }
    for (const name of knownHere()) {
      if (!done.has(numberOf(name))) await apply(connection, name);
    }
  } finally {
    await connection.send('SELECT pg_advisory_unlock($1)', [LOCKS.migrations]);
  }
}

/** Throws ConfigError for a server that cannot be used. */
export async function checkServer(connection: Connection): Promise<void> {
  const [row] = await connection.command(`
    SELECT current_setting('server_version_num')::INTEGER AS version,
      current_setting('server_encoding') AS encoding`);
  if (Number(row?.['version']) < VERSION_MIN) {
    throw new ConfigError('TABERN_DATABASE_URL names a PostgreSQL older than 15; use 15 or newer');
  }
  if (row?.['encoding'] !== 'UTF8') {
    throw new ConfigError(
      'the database of TABERN_DATABASE_URL is not encoded in UTF8: ' +
        "create it with CREATE DATABASE ... ENCODING 'UTF8' TEMPLATE template0",
    );
  }
}

/** Whether this version must not use the database. */
export async function isNewer(connection: Connection): Promise<boolean> {
  return isAhead(await doneIn(connection));
}

function isAhead(done: ReadonlySet<number>): boolean {
  const last = Math.max(0, ...knownHere().map(numberOf));
  return Math.max(0, ...done) > last + AHEAD_MAX;
}

async function doneIn(connection: Connection): Promise<Set<number>> {
  const rows = await connection.command('SELECT number FROM migrations');
  return new Set(rows.map(({ number }) => Number(number)));
}

function knownHere(): string[] {
  return readdirSync(FOLDER)
    .filter((name) => /^\d{4}_\w+\.sql$/.test(name))
    .sort();
}

async function apply(connection: Connection, name: string): Promise<void> {
  const sql = readFileSync(new URL(name, FOLDER), 'utf8');
  await connection.command('BEGIN');
  try {
    await connection.command(sql);
    await connection.send('INSERT INTO migrations (number, name) VALUES ($1, $2)', [
      numberOf(name),
      name,
    ]);
    await connection.command('COMMIT');
  } catch (error) {
    await connection.command('ROLLBACK');
    throw error;
  }
}

function numberOf(name: string): number {
  return Number(name.slice(0, 4));
}
