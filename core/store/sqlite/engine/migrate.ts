/**
 * Migrations: schema/NNNN_name.sql, run in order of their numbers, forward only, each in one
 * transaction that also records it. A recorded migration that this version does not have means that
 * a newer tabern wrote the database: it is refused.
 */
import { readdirSync, readFileSync } from 'node:fs';
import type { Database } from 'better-sqlite3';
import { ConfigError } from '../../../../proto/common/env.ts';

const FOLDER = new URL('../schema/', import.meta.url);

export function migrate(db: Database): void {
  db.exec(`
    CREATE TABLE IF NOT EXISTS migrations (
      number INTEGER PRIMARY KEY, name TEXT NOT NULL) STRICT`);
  const done = doneIn(db);
  const known = knownHere();
  if (isNewer(db)) {
    throw new ConfigError('the data directory was written by a newer tabern; run that one');
  }
  for (const name of known) {
    if (!done.has(numberOf(name))) apply(db, name);
  }
}

/** Whether a migration is recorded that this version does not have. */
export function isNewer(db: Database): boolean {
  const numbers = new Set(knownHere().map(numberOf));
  return [...doneIn(db)].some((number) => !numbers.has(number));
}

function doneIn(db: Database): Set<number> {
  return new Set(db.prepare<[], number>('SELECT number FROM migrations').pluck().all());
}

function knownHere(): string[] {
  return readdirSync(FOLDER)
    .filter((name) => /^\d{4}_\w+\.sql$/.test(name))
    .sort();
}

function apply(db: Database, name: string): void {
  const sql = readFileSync(new URL(name, FOLDER), 'utf8');
  db.transaction(() => {
    db.exec(sql);
    db.prepare('INSERT INTO migrations (number, name) VALUES (?, ?)').run(numberOf(name), name);
  }).immediate();
}

function numberOf(name: string): number {
  return Number(name.slice(0, 4));
}
