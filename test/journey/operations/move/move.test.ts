/**
 * `tabern move` of a whole service: one on SQLite and files answers requests, its directory is
 * moved to a PostgreSQL and a bucket, and the service on these answers them byte for byte.
 * `TABERN_TEST_MOVE_GB=2` grows the directory to that size before. Without test/run.ts, which
 * prints the output of red files only, it shows how long each step took.
 */
import { createHash } from 'node:crypto';
import { join } from 'node:path';
import { suite } from 'uvu';
import { equal, is, match, ok } from 'uvu/assert';
import { openBucket } from '../../../../core/files/s3/bucket.ts';
import type { S3Place } from '../../../../core/files/s3/place.ts';
import { hasPostgres, startPostgres } from '../../../support/postgres.ts';
import { startReceiver } from '../../../support/servers/receiver.ts';
import { startS3 } from '../../../support/servers/s3.ts';
import { startSite } from '../../../support/servers/site.ts';
import { tabern } from '../../../support/service/command.ts';
import { boot, type Stack } from '../../../support/service/stack.ts';
import { fill } from './content.ts';
import { grow } from './grow.ts';
import { rowsOf, sumsOfFile, sumsOfServer } from './rows.ts';

const journey = suite('journey/operations/move');

const GB = Number(process.env['TABERN_TEST_MOVE_GB'] ?? 0);
/** Of one command. A limit of a wait, and no speed. */
const LIMIT_MS = 1_800_000;
/** Requests that are answered 200. */
const FOUND_MIN = 50;
/** Headers of the moment, of the connection, and of the request. */
const OF_EACH_ANSWER = ['date', 'connection', 'keep-alive', 'x-request-id'];

/** `path: status, headers`, and the hash of the body. */
async function answersOf(stack: Stack, paths: readonly string[]): Promise<string[]> {
  const answers: string[] = [];
  for (const path of paths) {
    const answer = await stack.fetch(path, { redirect: 'manual' });
    const body = Buffer.from(await answer.arrayBuffer());
    const headers = [...answer.headers].filter(([name]) => !OF_EACH_ANSWER.includes(name));
    const shown = body.length < 10_000 ? body.toString() : hash(body);
    answers.push(`${path}: ${answer.status} ${JSON.stringify(headers)} ${hash(body)}\n${shown}`);
  }
  return answers;
}

const hash = (bytes: Buffer): string => createHash('sha256').update(bytes).digest('hex');

async function timed<T>(title: string, act: () => Promise<T>): Promise<T> {
  const at = performance.now();
  const value = await act();
  if (GB > 0) console.log(`${title}: ${((performance.now() - at) / 1_000).toFixed(1)} s`);
  return value;
}

/** A PostgreSQL and a bucket, and the settings that name them. */
async function openTargets(opened: AsyncDisposableStack) {
  const cluster = opened.use(await startPostgres());
  const server = opened.use(await startS3());
  const place = await server.bucket();
  const url = await cluster.createDatabase();
  const { TABERN_BLOBS: bucket = '', ...keys } = server.settings(place);
  return { url, bucket, keys, place };
}

/** Each row, and each file that a row names. `said`: by the command. */
async function expectMoved(dataDir: string, url: string, place: S3Place, said: string) {
  const { tables, sums, files } = sumsOfFile(join(dataDir, 'tabern.db.moved'));
  equal(await sumsOfServer(url, tables), sums);
  match(said, new RegExp(`^${rowsOf(sums)} rows of ${tables.length} tables$`, 'm'));
  using objects = openBucket(place);
  for (const { id, sha256 } of files) {
    const object = Buffer.from(await (await objects.get(place.prefix + id)).arrayBuffer());
    is(hash(object), sha256, id);
  }
  if (GB > 0) console.log(`${rowsOf(sums)} rows, ${files.length} files`);
}

async function expectFit(dataDir: string, settings: Record<string, string>): Promise<void> {
  const argv = ['doctor', '--json', '--data', dataDir];
  const { code, out, err } = await tabern(argv, settings, LIMIT_MS).ended;
  is(code, 0, out + err);
  const { findings } = JSON.parse(out) as { findings: { check: string; level: string }[] };
  const failed = findings.filter(({ level }) => level === 'fail');
  equal(failed, []);
}

if (hasPostgres()) {
  journey('a moved service answers as before, with the same rows and files', async () => {
    await using opened = new AsyncDisposableStack();
    const { url, bucket, keys, place } = await openTargets(opened);
    const site = opened.use(await startSite());
    const receiver = opened.use(await startReceiver());
    const env = { TABERN_SESSION_GRACE_MS: '200' };
    const stack = opened.use(await boot({ env, webhookCa: receiver.caPath }));
    const { dataDir } = stack;
    const paths = await fill(stack, site.url, receiver);
    if (GB > 0) await timed('grown', () => grown(stack));
    const before = await timed('answered', () => answersOf(stack, paths));
    const found = before.filter((answer, index) => answer.startsWith(`${paths[index]}: 200 `));
    ok(found.length >= FOUND_MIN, String(found.length));
    await stack.kill('SIGTERM');

    const argv = ['move', '--to', url, '--s3', bucket, '--data', dataDir];
    const moved = await timed('moved', () => tabern(argv, keys, LIMIT_MS).ended);
    is(moved.code, 0, moved.err);
    await timed('compared', () => expectMoved(dataDir, url, place, moved.out));
    const settings = { ...keys, TABERN_BLOBS: bucket, TABERN_DATABASE_URL: url };
    await timed('doctor', () => expectFit(dataDir, settings));
    await timed('started', () => stack.restart(settings));
    const after = await timed('answered', () => answersOf(stack, paths));
    const changed = after.filter((answer, index) => answer !== before[index]);
    equal(changed, []);
  });
}

/** Grows the directory while the service is stopped. */
async function grown(stack: Stack): Promise<void> {
  const { data } = await stack.call<{ data: { id: string; name: string }[] }>('/v1/functions');
  const functionId = data.find(({ name }) => name === 'good')?.id ?? '';
  await stack.kill('SIGTERM');
  const { apiKey, dataDir } = stack;
  const bytes = GB * 1e9;
  const { invocations } = await grow(dataDir, { bytes, apiKey, functionId });
  console.log(`${invocations} invocations`);
  await stack.restart();
}

journey.run();
