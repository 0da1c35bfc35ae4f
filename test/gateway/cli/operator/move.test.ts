/** `tabern move` as an operator calls it, with a real PostgreSQL and a real S3 server. */
import { createHash } from 'node:crypto';
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import postgres from 'postgres';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { type Core, startCore } from '../../../../core/main.ts';
import { move } from '../../../../gateway/cli/operator/move.ts';
import { EXIT, type Exit } from '../../../../gateway/process/exit-codes.ts';
import type { Env } from '../../../../proto/common/env.ts';
import { openLog } from '../../../../proto/common/log.ts';
import { must } from '../../../../proto/common/must.ts';
import { type Booted, boot, configOn, KEY } from '../../../core/boot.ts';
import { ENGINES, openBench } from '../../../core/store/engines.ts';
import { bucketOf } from '../../../support/engine.ts';
import { freePort } from '../../../support/port.ts';
import { hasPostgres, startPostgres } from '../../../support/postgres.ts';
import { tabern } from '../../../support/service/command.ts';
import { tempDirectory } from '../../../support/temp.ts';

const test = suite('gateway/cli/operator/move');

test('a data directory of another user is named, with its user', async () => {
  await using dir = tempDirectory();
  const path = join(dir.path, 'lock.db');
  const error = Object.assign(new Error('EACCES: permission denied'), { code: 'EACCES', path });
  const env = { TABERN_DATA: dir.path, TABERN_BLOBS: 's3://bucket' };
  const moves = { env, moveBlobs: () => Promise.reject(error), moveToPostgres: unused };
  const said = await move({}, moves).then(
    () => undefined,
    (one: unknown) => one as Exit,
  );
  assert.is(said?.code, EXIT.config);
  assert.match(said?.message ?? '', `cannot use the data directory ${dir.path}`);
});

function unused(): never {
  throw new Error('no database was to be moved');
}

/** More than an object's part of 5 MiB. */
const LARGE = 'a large file '.repeat(500_000);

const hash = (bytes: string | Buffer) => createHash('sha256').update(bytes).digest('hex');

/** A closed core's directory with rows and files, and what its core answered. */
async function openScene() {
  await using opened = new AsyncDisposableStack();
  const app = opened.use(await boot({ TABERN_DATABASE_URL: '' })); // SQLite on any run
  const texts = ['small', LARGE, ''];
  const ids: string[] = [];
  for (const text of texts) ids.push(await app.upload(text));
  await app.invoke(await app.publish({ name: 'title' }));
  const read = async ({ clients }: Pick<Core, 'clients'>) => [
    await clients.functions.listFunctions({}, app.asProject),
    await clients.functions.listBuilds({}, app.asProject),
    await Promise.all(ids.map((blobId) => hashOf(clients, app, blobId))),
  ];
  const answers = await read(app.core);
  assert.equal(answers.at(-1), texts.map(hash));
  await app.core.close();
  const { TABERN_BLOBS: bucket = '', ...keys } = await bucketOf(app.dir);
  const on = { TABERN_DATA: app.dir, ...keys };
  const kept = opened.move();
  return {
    dir: app.dir,
    bucket,
    files: readdirSync(join(app.dir, 'blobs')).length,
    run: (...argv: string[]) => tabern(['move', ...argv], on).ended,
    /** A core with these settings answers as the first one did. */
    async isServed(env: Env): Promise<void> {
      const settings = { ...keys, TABERN_API_KEY: KEY, ...env };
      const log = openLog({ role: 'core', level: 'silent' });
      await using core = await startCore(configOn(app.dir, settings), log, { now: app.clock.now });
      assert.equal(await read(core), answers);
    },
    [Symbol.asyncDispose]: () => kept.disposeAsync(),
  };
}

async function hashOf(clients: Core['clients'], app: Booted, blobId: string): Promise<string> {
  const sum = createHash('sha256');
  for await (const { chunk } of clients.blobs.readBlob({ blobId }, app.asProject)) {
    sum.update(chunk);
  }
  return sum.digest('hex');
}

test('--s3 moves the files alone', async () => {
  await using scene = await openScene();
  const { dir, bucket, files } = scene;
  const moved = await scene.run('--s3', bucket);
  assert.is(moved.code, 0, moved.err);
  assert.is(moved.out, `${bucket}\n`);
  assert.match(moved.err, new RegExp(`^${files} files of .*: set TABERN_BLOBS to it$`, 'm'));
  assert.match(moved.err, `remove ${join(dir, 'blobs.moved')} when`);
  assert.equal([existsSync(join(dir, 'blobs')), existsSync(join(dir, 'tabern.db'))], [false, true]);
  await scene.isServed({ TABERN_BLOBS: bucket, TABERN_DATABASE_URL: '' });
});

if (hasPostgres()) {
  test('--to and --s3 move rows and files, or nothing', async () => {
    await using cluster = await startPostgres();
    const url = await cluster.createDatabase();
    await using scene = await openScene();
    const { dir, bucket, files } = scene;
    const before = namesIn(dir);
    const database = readFileSync(join(dir, 'tabern.db'));
    const wrong = await scene.run('--to', url, '--s3', 's3://none-such');
    assert.is(wrong.code, 2);
    assert.is(wrong.out, '');
    const sentence = 'names the bucket none-such, which does not exist: create it, or set another.';
    assert.is(wrong.err, `tabern: TABERN_BLOBS ${sentence}\n`);
    assert.equal(namesIn(dir), before);
    assert.ok(readFileSync(join(dir, 'tabern.db')).equals(database));
    assert.is(await tablesIn(url), 0);
    const moved = await scene.run('--to', url, '--s3', bucket);
    assert.is(moved.code, 0, moved.err);
    const [first = '', second = '', ...more] = moved.out.split('\n');
    assert.is(first, bucket);
    assert.match(second, /^[1-9]\d+ rows of \d+ tables$/);
    assert.equal(more, ['']);
    assert.match(moved.err, `${files} files of `);
    assert.match(moved.err, 'the database is in PostgreSQL: set TABERN_DATABASE_URL to it');
    for (const kept of ['blobs', 'tabern.db']) {
      assert.match(moved.err, `remove ${join(dir, kept)}.moved when`);
      assert.is(existsSync(join(dir, kept)), false, kept);
    }
    await scene.isServed({ TABERN_BLOBS: bucket, TABERN_DATABASE_URL: url });
  });
}

/** Without the files of SQLite that a reader of the database leaves. */
function namesIn(dir: string): string[] {
  const names = readdirSync(dir, { recursive: true, encoding: 'utf8' });
  return names.filter((name) => !/\.db-(wal|shm)$/.test(name)).sort();
}

async function tablesIn(url: string): Promise<number> {
  const sql = postgres(url, { max: 1, onnotice: () => {} });
  await using _ = { [Symbol.asyncDispose]: () => sql.end() };
  const rows = await sql`SELECT 1 FROM pg_tables WHERE schemaname = 'public'`;
  return rows.length;
}

if (hasPostgres()) {
  test('a move says what is wrong in one sentence, then moves once', async () => {
    await using bench = await openBench(must(ENGINES[0], 'SQLite'));
    await bench.publish(await bench.project('moved'));
    const on = { TABERN_DATA: bench.dir };
    const to = (url: string) => tabern(['move', '--to', url], on).ended;
    const away = `postgres://tabern:verysecret@127.0.0.1:${await freePort()}/none`;
    await bench.store.close();
    const nowhere = await to(away);
    assert.is(nowhere.code, 1);
    assert.match(
      nowhere.err,
      /^tabern: .*names a server that does not answer: .*\(ECONNREFUSED\)$/m,
    );
    assert.not.match(nowhere.err, /verysecret|\n {4}at /);
    await using cluster = await startPostgres();
    const url = await cluster.createDatabase();
    const moved = await to(url);
    assert.is(moved.code, 0, moved.err);
    assert.match(moved.out, /^\d+ rows of \d+ tables$/m);
    const again = await to(url);
    const started = await tabern(['serve'], { ...on, TABERN_DATABASE_URL: away }).ended;
    assert.is(started.code, 70);
    assert.match(started.err, /^tabern: TABERN_DATABASE_URL names a server that does not answer/m);
    assert.is(again.code, 2);
    assert.match(again.err, 'has no database of SQLite');
    const doctor = await tabern(['doctor'], { ...on, TABERN_DATABASE_URL: url }).ended;
    assert.match(doctor.out, /^ok +database +in PostgreSQL$/m);
    const target = ['backup', `${bench.dir}/backup.tar`];
    const backup = await tabern(target, { ...on, TABERN_DATABASE_URL: url }).ended;
    assert.is(backup.code, 2);
    assert.match(backup.err, /pg_dump/);
  });
}

test.run();
