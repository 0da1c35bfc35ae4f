/**
 * Data directories of earlier releases go on: one is kept of each (upgrade/<version>.sql), and each
 * step of the schema leads to the newest.
 */
import { mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import Sqlite, { type Database } from 'better-sqlite3';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { startCore } from '../../../core/main.ts';
import { migrate } from '../../../core/store/sqlite/engine/migrate.ts';
import { openLog } from '../../../proto/common/log.ts';
import { must } from '../../../proto/common/must.ts';
import type { Objects } from '../../gateway/tenants/tenant.ts';
import { tempDirectory } from '../../support/temp.ts';
import { configOn } from '../boot.ts';

const test = suite('core/store/upgrade');

const KEPT = join(import.meta.dirname, 'upgrade');
const SCHEMA = join(import.meta.dirname, '../../../core/store/sqlite/schema');
const RELEASES = readdirSync(KEPT).filter((name) => name.endsWith('.sql'));

type Kept = { apiKey: string; objects: Objects; keys: Record<string, string> };

/** The data directory that a release left. */
function layDown(dir: string, release: string): Kept {
  const kept: Kept = JSON.parse(readFileSync(join(KEPT, release.replace('.sql', '.json')), 'utf8'));
  mkdirSync(join(dir, 'keys'), { mode: 0o700 });
  for (const [name, text] of Object.entries(kept.keys)) {
    writeFileSync(join(dir, 'keys', name), Buffer.from(text, 'base64'), { mode: 0o600 });
  }
  const db = new Sqlite(join(dir, 'tabern.db'));
  db.exec(readFileSync(join(KEPT, release), 'utf8'));
  db.close();
  return kept;
}

function schemaOf(db: Database): string[] {
  return db
    .prepare<[], string>('SELECT sql FROM sqlite_schema WHERE sql IS NOT NULL ORDER BY name')
    .pluck()
    .all();
}

/** Of contexts, and of bytes by kind, as the rows have them. */
function sumsOf(dir: string): number[] {
  using opened = new DisposableStack();
  const db = opened.adopt(new Sqlite(join(dir, 'tabern.db')), (one) => one.close());
  const one = (sql: string) => db.prepare<[], number>(sql).pluck().get() ?? 0;
  const bytes = (...kinds: string[]) =>
    one(`SELECT SUM(size) FROM blobs WHERE kind IN (${kinds.map((kind) => `'${kind}'`)})`);
  const contexts = one(`SELECT COUNT(*) FROM contexts WHERE status = 'active'`);
  const uploads = bytes('BUILD_ARCHIVE', 'BUNDLE', 'EXTENSION');
  assert.ok(contexts > 0 && uploads > 0, 'something to count');
  const logs = one('SELECT SUM(octet_length(entries)) FROM session_logs');
  const results = one('SELECT SUM(octet_length(results)) FROM invocations');
  const files = [bytes('CONTEXT'), bytes('DOWNLOAD'), bytes('RECORDING'), uploads];
  return [contexts, ...files, logs + results];
}

for (const release of RELEASES) {
  test(`what ${release.replace('.sql', '')} stored is served, with its secrets`, async () => {
    await using dir = tempDirectory();
    const { apiKey, objects, keys } = layDown(dir.path, release);
    const config = configOn(dir.path);
    await using core = await startCore(config, openLog({ role: 'core', level: 'silent' }));
    assert.is(core.firstStart, undefined);
    const { clients } = core;
    const as = { metadata: { 'x-svc-api-key': apiKey } };
    const { id } = must((await clients.projects.listProjects({}, as)).projects[0], 'the project');
    assert.is(id, objects.project);
    const found = await Promise.all([
      clients.contexts.getContext({ id: objects.context }, as),
      clients.sessions.getSession({ id: objects.session }, as),
      clients.functions.getFunction({ id: objects.function }, as),
      clients.functions.getBuild({ buildId: objects.build }, as),
      clients.invocations.getInvocation({ id: objects.invocation }, as),
      clients.extensions.getExtension({ id: objects.extension }, as),
      clients.downloads.getDownload({ id: objects.download }, as),
    ]);
    assert.is(found.length, 7);
    const token = Buffer.from(must(keys['gateway.token'], 'a token'), 'base64').toString().trim();
    const asGateway = { metadata: { authorization: `Bearer ${token}` } };
    const claim = { senderId: 's', instanceId: crypto.randomUUID(), max: 8, waitMs: 0 };
    const { claims } = await clients.deliveries.claimDeliveries(claim, asGateway);
    assert.is(claims[0]?.headers['webhook-id'], objects.delivery);
    assert.match(claims[0]?.headers['webhook-signature'] ?? '', /^v1,/);
    const { storage } = await clients.projects.getProjectUsage({ id }, as);
    assert.equal(
      Object.values(must(storage, 'what is stored')).map(({ used }) => used),
      sumsOf(dir.path),
    );
  });
}

test('an upgrade sums the usage of the rows that are there, and counts each once', () => {
  const db = new Sqlite(':memory:');
  const done = readdirSync(SCHEMA)
    .sort()
    .filter((name) => name < '0023');
  db.exec('CREATE TABLE migrations (number INTEGER PRIMARY KEY, name TEXT NOT NULL) STRICT');
  for (const name of done) {
    db.exec(readFileSync(join(SCHEMA, name), 'utf8'));
    db.exec(`INSERT INTO migrations VALUES (${Number(name.slice(0, 4))}, '${name}')`);
  }
  const day = 20_000 * 86_400_000;
  const session = (id: string, started: number | null, ended: number | null) =>
    db.exec(`INSERT INTO sessions (id, project_id, status, region, params, proxy_bytes, created_at,
        updated_at, started_at, ended_at, expires_at)
      VALUES ('${id}', 'p', 'COMPLETED', 'r', '{}', 5, 0, 0, ${started}, ${ended}, 0)`);
  db.pragma('foreign_keys = OFF');
  db.exec(`INSERT INTO projects (id, name, default_timeout, concurrency, created_at, updated_at,
      past_minutes, past_proxy_bytes) VALUES ('p', 'p', 900, 25, 0, 0, 100, 7)`);
  session('s1', day, day + 61_000);
  session('s2', null, day + 1_000);
  session('s3', day, null);
  const invocation = (id: string, of: string, status: string) =>
    db.exec(`INSERT INTO invocations (id, project_id, function_id, version_id, session_id, region,
        status, params, timeout_ms, created_at, updated_at, ended_at, expires_at)
      VALUES ('${id}', 'p', 'f', 'v', '${of}', 'r', '${status}', '{}', 1, 0, 0, ${day}, 0)`);
  invocation('i1', 's1', 'COMPLETED');
  invocation('i2', 's2', 'FAILED');
  migrate(db);
  const sums = { sessions: 1, minutes: 2, proxy_bytes: 5, runs: 2, failed_runs: 1 };
  const of = { project_id: 'p', day: 20_000 };
  assert.equal(db.prepare('SELECT * FROM usage_days').all(), [{ ...of, ...sums }]);
  assert.equal(db.prepare('SELECT * FROM usage_function_days').all(), [
    { ...of, function_id: 'f', ...sums },
  ]);
  const past = db.prepare(
    'SELECT past_minutes AS minutes, past_proxy_bytes AS bytes FROM projects',
  );
  assert.equal(past.get(), { minutes: 102, bytes: 12 });
  db.exec(`UPDATE sessions SET ended_at = ${day + 1} WHERE id = 's3'`);
  assert.equal(past.get(), { minutes: 103, bytes: 17 });
  db.exec(`UPDATE sessions SET ended_at = ${day + 2} WHERE id = 's3'`);
  assert.equal(past.get(), { minutes: 103, bytes: 17 }, 'a session ends once');
  db.close();
});

test('each migration leads to the newest schema, and none runs twice', () => {
  const newest = new Sqlite(':memory:');
  migrate(newest);
  const steps = readdirSync(SCHEMA).sort();
  for (const count of steps.keys()) {
    const db = new Sqlite(':memory:');
    db.exec('CREATE TABLE migrations (number INTEGER PRIMARY KEY, name TEXT NOT NULL) STRICT');
    for (const name of steps.slice(0, count)) {
      db.exec(readFileSync(join(SCHEMA, name), 'utf8'));
      const row = db.prepare('INSERT INTO migrations (number, name) VALUES (?, ?)');
      row.run(Number(name.slice(0, 4)), name);
    }
    migrate(db);
    migrate(db);
    const tables = (one: Database) => schemaOf(one).filter((sql) => !/migrations/.test(sql));
    assert.equal(tables(db), tables(newest), steps[count]);
    db.close();
  }
  newest.close();
});

test.run();
