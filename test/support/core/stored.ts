/**
 * What a service has stored, wherever that is: files and SQLite in one directory, or, with the
 * roles apart, a directory of each role, objects of a bucket and rows of PostgreSQL.
 */
import { readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { basename, dirname, join, relative } from 'node:path';
import type { Sql } from 'postgres';
import type { Bucket } from '../../../core/files/s3/bucket.ts';

/** Loaded when needed: most tests do not look. */
const openers = {
  sqlite: () => import('better-sqlite3'),
  postgres: () => import('postgres'),
  bucket: () => import('../../../core/files/s3/bucket.ts'),
  engine: () => import('../engine.ts'),
};

/** Bytes are as latin1. */
type Text = { place: string; text: string };
type Value = string | number;

export type Stored = {
  /** The data directories, that of core first. */
  directories(): string[];
  /** Each file but caches of packages, and of roles apart each object and table. */
  texts(): AsyncGenerator<Text>;
  blobs: {
    names(): Promise<string[]>;
    read(name: string): Promise<Buffer>;
    write(name: string, bytes: Buffer): Promise<void>;
    remove(name: string): Promise<void>;
  };
  /** Runs a statement of SQL, with a `?` for each value. Returns how many rows it changed. */
  change(statement: string, ...values: readonly Value[]): Promise<number>;
  /** Sets the clock of PostgreSQL, which is that of cores apart; nothing without it. */
  setClock(offMs: number): Promise<void>;
  /** The runner that has the session, invocation or build. With the roles apart. */
  holderOf(jobId: string): Promise<string | undefined>;
};

type Options = { dataDir: string; isApart: boolean; env: Record<string, string> };

/** Of the service with that directory and these settings. */
export function openStored({ dataDir, isApart, env }: Options): Stored {
  const withRows = async <T>(work: (sql: Sql) => Promise<T>): Promise<T> => {
    const { urlOf } = await openers.engine();
    const { default: postgres } = await openers.postgres();
    const url = env['TABERN_DATABASE_URL'] ?? (await urlOf(dataDir));
    const sql = postgres(url, { max: 1, onnotice: () => {} });
    try {
      return await work(sql);
    } finally {
      await sql.end();
    }
  };
  const directories = () => (isApart ? apartFrom(dataDir) : [dataDir]);
  const blobs = isApart ? objectsOf(dataDir) : filesIn(join(dataDir, 'blobs'));
  return {
    directories,
    blobs,
    async *texts() {
      for (const directory of directories()) yield* textsIn(directory);
      if (!isApart) return;
      for (const name of await blobs.names()) {
        yield { place: `object ${name}`, text: (await blobs.read(name)).toString('latin1') };
      }
      yield* await withRows(tablesOf);
    },
    async change(statement, ...values) {
      if (!isApart) return changeSqlite(join(dataDir, 'tabern.db'), statement, values);
      let count = 0;
      const numbered = statement.replaceAll('?', () => {
        count += 1;
        return `$${count}`;
      });
      return await withRows(async (sql) => (await sql.unsafe(numbered, [...values])).count);
    },
    async setClock(offMs) {
      if (!isApart) return;
      const now = 'floor(extract(epoch FROM clock_timestamp()) * 1000)::bigint';
      const made = 'CREATE OR REPLACE FUNCTION now_ms() RETURNS bigint LANGUAGE sql VOLATILE';
      await withRows((sql) => sql.unsafe(`${made} RETURN ${now} + ${Math.round(offMs)}`));
    },
    holderOf: (jobId) =>
      withRows(async (sql) => {
        const [row] = await sql`SELECT runner_id FROM jobs WHERE id = ${jobId}`;
        return row?.['runner_id'] ?? undefined;
      }),
  };
}

/** As ../service/apart/split.ts names them. */
function apartFrom(dataDir: string): string[] {
  const [parent, own] = [dirname(dataDir), basename(dataDir)];
  const isRole = (name: string) => name.startsWith(`${own}-`) && name !== `${own}-certs`;
  return [
    dataDir,
    ...readdirSync(parent)
      .filter(isRole)
      .map((name) => join(parent, name)),
  ];
}

function* textsIn(directory: string): Generator<Text> {
  for (const entry of readdirSync(directory, { recursive: true, withFileTypes: true })) {
    const path = join(entry.parentPath, entry.name);
    const isCached = /^cache\/(?:npm|chromium)/.test(relative(directory, path));
    if (entry.isFile() && !isCached) yield { place: path, text: textOf(path) };
  }
}

function textOf(path: string): string {
  try {
    return readFileSync(path, 'latin1');
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return ''; // removed meanwhile
    throw error;
  }
}

function filesIn(folder: string): Stored['blobs'] {
  return {
    names: async () => readdirSync(folder),
    read: async (name) => readFileSync(join(folder, name)),
    write: async (name, bytes) => writeFileSync(join(folder, name), bytes),
    remove: async (name) => rmSync(join(folder, name)),
  };
}

/** A container of Swift lists an object soon after its upload, and not at once. */
function objectsOf(dataDir: string): Stored['blobs'] {
  const withBucket = async <T>(work: (bucket: Bucket) => Promise<T>): Promise<T> => {
    const { placeOf } = await openers.engine();
    const { openBucket } = await openers.bucket();
    using bucket = openBucket(await placeOf(dataDir));
    return await work(bucket);
  };
  return {
    names: () => withBucket(async (bucket) => (await bucket.list('')).items.map(({ key }) => key)),
    read: (name) =>
      withBucket(async (bucket) => Buffer.from(await (await bucket.get(name)).arrayBuffer())),
    write: (name, bytes) => withBucket((bucket) => bucket.put(name, bytes)),
    remove: (name) => withBucket((bucket) => bucket.remove(name)),
  };
}

async function changeSqlite(
  path: string,
  statement: string,
  values: readonly Value[],
): Promise<number> {
  const { default: Sqlite } = await openers.sqlite();
  using opened = new DisposableStack();
  const db = opened.adopt(new Sqlite(path), (one) => one.close());
  return db.prepare(statement).run(...values).changes;
}

/** All rows of all tables, bytes as they are. */
async function tablesOf(sql: Sql): Promise<Text[]> {
  const tables = await sql<{ name: string }[]>`
    SELECT table_name AS name FROM information_schema.tables
    WHERE table_schema = current_schema() AND table_type = 'BASE TABLE'`;
  const texts: Text[] = [];
  for (const { name } of tables) {
    const rows = await sql`SELECT * FROM ${sql(name)}`;
    const lines = rows.map((row) => Object.values(row).map(shown).join('\0'));
    texts.push({ place: `table ${name}`, text: lines.join('\n') });
  }
  return texts;
}

function shown(value: unknown): string {
  if (value instanceof Uint8Array) return Buffer.from(value).toString('latin1');
  return typeof value === 'object' ? JSON.stringify(value) : String(value);
}
