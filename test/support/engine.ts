/**
 * Databases of PostgreSQL for tests that run on either engine: a server for the process, or that of
 * TABERN_TEST_POSTGRES (its URL, without a database). A directory has one database, as it has one
 * of SQLite. Buckets likewise, of a server for the process or that of TABERN_TEST_S3 (its URL).
 *
 * TABERN_TEST_DATABASE=postgres: the cores of `test/core/boot.ts` are on PostgreSQL. A process that
 * a test starts gets the URL of its directory's database in its place (`envOn`).
 */
import postgres from 'postgres';
import { environmentOf, type S3Place } from '../../core/files/s3/place.ts';
import { Connection } from '../../core/store/postgres/engine/connection.ts';
import { migrate } from '../../core/store/postgres/engine/migrate.ts';
import { openPostgres } from '../../core/store/postgres/open.ts';
import { openStore } from '../../core/store/thread.ts';
import type { Store } from '../../core/store/types.ts';
import type { Env } from '../../proto/common/env.ts';
import { openLog } from '../../proto/common/log.ts';
import { lendDatabase } from './core/migrated.ts';
import { type Cluster, startPostgres } from './postgres.ts';
import { newBucket, type S3Server, startS3 } from './servers/s3.ts';

const OPTIONS = {
  durability: 'normal',
  log: openLog({ role: 'core', level: 'silent' }),
} as const;

let cluster: Promise<Cluster> | undefined;
const databases = new Map<string, Promise<string>>();
/** URLs of those that exist. */
const made = new Map<string, string>();
let s3: Promise<S3Server> | undefined;
const buckets = new Map<string, Promise<S3Place>>();
let count = 0;
let template: Promise<string> | undefined;

const ENGINE = process.env['TABERN_TEST_DATABASE'] ?? '';
/** Of the process that started this one. */
const given = ENGINE.startsWith('postgres:') ? ENGINE : undefined;
export const isOnPostgres = ENGINE === 'postgres' || given !== undefined;

/**
 * Settings of a first core on the directory, on the engine that TABERN_TEST_DATABASE names. Gives
 * it a migrated database of that engine.
 */
export async function databaseOf(dir: string): Promise<Env> {
  if (isOnPostgres) return { TABERN_DATABASE_URL: given ?? (await urlOf(dir)) };
  await lendDatabase(dir);
  return {};
}

/** Those of a later core on it. */
export function sameDatabaseOf(dir: string): Env {
  const url = given ?? made.get(dir);
  return isOnPostgres && url !== undefined ? { TABERN_DATABASE_URL: url } : {};
}

/** The environment of a process that starts a core on the directory, as this one has. */
export function envOn(dir: string): Env {
  const { TABERN_DATABASE_URL: url } = sameDatabaseOf(dir);
  return { ...process.env, ...(url !== undefined && { TABERN_TEST_DATABASE: url }) };
}

/** A store on the database of a core that has ended. */
export function openStoreOn(dir: string): Promise<Store> {
  if (isOnPostgres) return openOnPostgres(dir);
  return openStore({ dir, durability: 'full', onFatal });
}

function onFatal(error: Error): never {
  throw error;
}

/** The URL of the directory's database. */
export function urlOf(dir: string): Promise<string> {
  const known = databases.get(dir) ?? createDatabase(dir);
  databases.set(dir, known);
  return known;
}

/** A store on the directory's database. */
export async function openOnPostgres(dir: string): Promise<Store> {
  const url = await urlOf(dir);
  return openPostgres({ ...OPTIONS, url, directUrl: url, isPooled: false });
}

/** The same, through PgBouncer in transaction mode. */
export async function openThroughPgBouncer(dir: string): Promise<Store> {
  const directUrl = await urlOf(dir);
  const url = (await serverOfProcess()).pooled(directUrl);
  return openPostgres({ ...OPTIONS, url, directUrl, isPooled: true });
}

async function createDatabase(dir: string): Promise<string> {
  const server = process.env['TABERN_TEST_POSTGRES'] ?? (await serverOfProcess()).url;
  template ??= migratedDatabase(server);
  const from = await template;
  count += 1;
  const name = `test_${process.pid}_${count}`;
  // unlike the default strategy it writes no log of the copied pages: 0.1 s instead of 0.5
  await command(server, `CREATE DATABASE ${name} TEMPLATE ${from} STRATEGY FILE_COPY`);
  const url = `${server}/${name}`;
  made.set(dir, url);
  return url;
}

/** Returns its name. Migrations take two seconds: they run once, and databases begin as copies. */
async function migratedDatabase(server: string): Promise<string> {
  const name = `template_${process.pid}`;
  await command(server, `CREATE DATABASE ${name}`);
  await using connection = await Connection.open({
    url: `${server}/${name}`,
    isPooled: false,
    name: 'tests',
  });
  await migrate(connection);
  return name;
}

async function command(server: string, text: string): Promise<void> {
  const sql = postgres(`${server}/postgres`, { max: 1, onnotice: () => {} });
  try {
    await sql.unsafe(text);
  } finally {
    await sql.end();
  }
}

function serverOfProcess(): Promise<Cluster> {
  if (cluster === undefined) {
    cluster = startPostgres();
    process.once('beforeExit', () => void stop());
  }
  return cluster;
}

/** The settings of core for the directory's bucket. */
export async function bucketOf(dir: string): Promise<Record<string, string>> {
  return environmentOf(await placeOf(dir));
}

/** The directory's bucket. */
export function placeOf(dir: string): Promise<S3Place> {
  const known = buckets.get(dir) ?? createBucket();
  buckets.set(dir, known);
  return known;
}

async function createBucket(): Promise<S3Place> {
  const endpoint = process.env['TABERN_TEST_S3'];
  if (endpoint !== undefined) return newBucket(endpoint);
  if (s3 === undefined) {
    s3 = startS3({ isShared: true });
    process.once('beforeExit', () => void s3?.then((server) => server[Symbol.asyncDispose]()));
  }
  return (await s3).bucket();
}

async function stop(): Promise<void> {
  await (await cluster)?.[Symbol.asyncDispose]();
}
