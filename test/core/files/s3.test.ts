/** A core whose blobs are in a bucket: its faults, its ownership, and what it removes. */
import { createHash } from 'node:crypto';
import { existsSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { newId } from '../../../core/common/ids.ts';
import { readCoreConfig } from '../../../core/config.ts';
import { type Bucket, openBucket } from '../../../core/files/s3/bucket.ts';
import { sentenceOf } from '../../../core/files/s3/errors.ts';
import { countLost } from '../../../core/files/s3/losses.ts';
import { openObjects } from '../../../core/files/s3/objects.ts';
import { nameOf, type S3Place, urlIn } from '../../../core/files/s3/place.ts';
import { startCore } from '../../../core/main.ts';
import { restoreBackup } from '../../../core/maintenance/backup/restore.ts';
import { checkData } from '../../../core/maintenance/doctor.ts';
import type { Finding } from '../../../proto/common/diagnostics.ts';
import { ConfigError } from '../../../proto/common/env.ts';
import { openLog } from '../../../proto/common/log.ts';
import { NO_METRICS } from '../../../proto/common/metrics.ts';
import { must } from '../../../proto/common/must.ts';
import { faultOf } from '../../support/fault.ts';
import { freePort } from '../../support/port.ts';
import { startS3 } from '../../support/servers/s3.ts';
import { tempDirectory } from '../../support/temp.ts';
import { type Booted, blobParts, boot, configOn } from '../boot.ts';

const test = suite('core/files/s3');
const log = openLog({ role: 'core', level: 'silent' });
const server = await startS3();
const ACCESS = { TABERN_BLOBS_ACCESS_KEY_ID: 'key', TABERN_BLOBS_SECRET_ACCESS_KEY: 'secret' };

async function bucketFault(app: Booted): Promise<string> {
  const { checks } = await app.clients.health.checkHealth({}, app.asGateway);
  return must(checks.find(({ name }) => name === 'bucket')?.fault, 'the check of the bucket');
}

const onBucket = async (place?: S3Place) => boot(server.settings(place ?? (await server.bucket())));

test('the settings name a bucket, and their errors the setting', () => {
  const read = (env: Record<string, string>) => readCoreConfig(env).bucket;
  assert.is(read({}), undefined);
  const amazon = read({ ...ACCESS, TABERN_BLOBS: 's3://abc', TABERN_BLOBS_REGION: 'eu-west-1' });
  assert.is(amazon?.endpoint, 'https://s3.eu-west-1.amazonaws.com');
  assert.is(amazon?.prefix, '');
  const place = must(read({ ...ACCESS, TABERN_BLOBS: 's3://abc/d/e/' }), 'a place');
  assert.is(urlIn(place, 'd/e/x').href, 'https://s3.us-east-1.amazonaws.com/abc/d/e/x');
  const inHost = urlIn({ ...place, style: 'host' }, 'd/e/x').href;
  assert.is(inHost, 'https://abc.s3.us-east-1.amazonaws.com/d/e/x');
  const refused: [Record<string, string>, RegExp][] = [
    [{ ...ACCESS, TABERN_BLOBS: 'abc' }, /^TABERN_BLOBS must be s3:/],
    [{ ...ACCESS, TABERN_BLOBS: 's3://A' }, /^TABERN_BLOBS must be s3:/],
    [{ ...ACCESS, TABERN_BLOBS: 's3://abc/../d' }, /^TABERN_BLOBS must be s3:/],
    [{ ...ACCESS, TABERN_BLOBS: 's3://abc', TABERN_BLOBS_STYLE: 'x' }, /^TABERN_BLOBS_STYLE must/],
    [{ TABERN_BLOBS: 's3://abc' }, /TABERN_BLOBS_ACCESS_KEY_ID must be set/],
    [
      { TABERN_BLOBS: 's3://abc', TABERN_BLOBS_ACCESS_KEY_ID: 'x' },
      /TABERN_BLOBS_SECRET_ACCESS_KEY must be set/,
    ],
  ];
  for (const [env, text] of refused) {
    assert.throws(
      () => read(env),
      (error: unknown) => error instanceof ConfigError && text.test(error.message),
    );
  }
});

const WRONG: Record<string, [over: (place: S3Place) => Partial<S3Place>, says: RegExp]> = {
  'a wrong secret': [() => ({ secretAccessKey: 'wrong' }), /^TABERN_BLOBS_SECRET_ACCESS_KEY /],
  'a wrong key': [() => ({ accessKeyId: 'test:none' }), /^TABERN_BLOBS_SECRET_ACCESS_KEY /],
  'a key without rights': [
    () => ({ accessKeyId: 'test:reader' }),
    /^TABERN_BLOBS_ACCESS_KEY_ID may/,
  ],
  'a missing bucket': [() => ({ bucket: 'none-such' }), /^TABERN_BLOBS names the bucket none-such/],
  'a wrong region': [() => ({ region: 'eu-x' }), /^TABERN_BLOBS_REGION, eu-x, .* set us-east-1\.$/],
};
for (const [what, [over, says]] of Object.entries(WRONG)) {
  test(`${what}: core starts, is not ready, and says the setting, without the secret`, async () => {
    const place = await server.bucket();
    await using app = await onBucket({ ...place, ...over(place) });
    assert.match(await bucketFault(app), says);
    const written = app.clients.blobs.writeBlob(
      blobParts({ kind: 'BUILD_ARCHIVE' }, 'x'),
      app.asProject,
    );
    const fault = await faultOf(written);
    assert.is(fault.reason, 'BLOBS_UNAVAILABLE');
    const texts = [fault.message, ...app.logged, await bucketFault(app)].join('\n');
    assert.not.match(texts, /secret-of-the-tests|Signature=|Credential=/);
    assert.ok(app.logged.some((line) => /TABERN_BLOBS/.test(line)));
  });
}

test('a clock that is wrong by an hour is a sentence about the clock', async () => {
  const place = await server.bucket();
  using bucket = openBucket(place, { wall: () => Date.now() - 3_600_000 });
  const error = await bucket.list('').catch((one: unknown) => one);
  assert.match(sentenceOf(error, place), /^This machine's clock differs/);
});

test('a server that does not answer is named; another start has all bytes in it', async () => {
  const place = await server.bucket();
  const nowhere = { ...place, endpoint: `http://127.0.0.1:${await freePort()}` };
  await using app = await onBucket(nowhere);
  assert.match(await bucketFault(app), /^TABERN_BLOBS_ENDPOINT, http.* \(ECONNREFUSED\)/);
  await using late = await onBucket(place);
  assert.is(await bucketFault(late), '');
  const text = 'abc'.repeat(50_000);
  const id = await late.upload(text);
  let read = '';
  for await (const { chunk } of late.clients.blobs.readBlob({ blobId: id }, late.asProject)) {
    read += Buffer.from(chunk).toString();
  }
  assert.is(read, text);
  assert.is(existsSync(join(late.dir, 'blobs')), false);
  assert.equal(readdirSync(join(late.dir, 'spool')), []);
});

test('a prefix of another installation is refused, and nothing of it is swept', async () => {
  const place = await server.bucket();
  using bucket = openBucket(place);
  const dir = tempDirectory();
  const blobs = await openObjects({ bucket, spoolDir: join(dir.path, 'spool'), log });
  {
    await using first = await onBucket(place);
    assert.is(await bucketFault(first), '');
    await first.upload('of the first');
  }
  await using second = await onBucket(place);
  assert.match(await bucketFault(second), /belongs to another installation.*set another prefix/);
  assert.is((await bucket.list('')).items.length, 2, 'the owner and the blob');
  await using third = await onBucket({ ...place, prefix: 'other/' });
  assert.is(await bucketFault(third), '');
  let count = 0;
  for await (const batch of blobs.list()) count += batch.length;
  assert.is(count, 1, 'only ids are blobs');
  await dir[Symbol.asyncDispose]();
});

test('uploads that nobody completes are aborted after an hour, younger ones are not', async () => {
  const place = await server.bucket();
  using bucket = openBucket(place);
  await using dir = tempDirectory();
  const blobs = await openObjects({ bucket, spoolDir: join(dir.path, 'spool'), log });
  const id = newId();
  await must(blobs.direct, 'direct').begin(id);
  assert.is(await blobs.sweepUploads(), 0);
  const hourAgo = { ...bucket, listUploads: aged(bucket.listUploads) };
  const spoolDir = join(dir.path, 'other');
  const later = await openObjects({ bucket: hourAgo, spoolDir, log });
  assert.is(await later.sweepUploads(), 1);
  assert.equal((await bucket.listUploads({ key: '', uploadId: '' })).items, []);
});

test('a signed request stores its bytes, and no others', async () => {
  const place = await server.bucket();
  using bucket = openBucket(place);
  const bytes = { size: 5, sha256: createHash('sha256').update('hello').digest('hex') };
  const { url, method, headers } = await bucket.signPut('blobs/x', bytes);
  assert.is(new URL(url).search, '', 'no signature in the URL');
  const send = (body: string, over: Record<string, string> = {}, to = url) =>
    fetch(to, { method, headers: { ...headers, ...over }, body }).then(
      ({ ok }) => ok,
      () => false,
    );
  const { authorization = '' } = headers;
  assert.is(await send('hullo'), false, 'another text');
  const longer = { 'content-length': '6' };
  assert.is(await send('hello!', longer), false, 'another length');
  const forged = {
    authorization: authorization.replace(/.$/, (last) => (last === '0' ? '1' : '0')),
  };
  assert.is(await send('hello', forged), false, 'forged');
  assert.is(await send('hello', {}, url.replace(/x$/, 'y')), false, 'another object');
  assert.equal((await bucket.list('')).items, []);
  assert.is(await send('hello'), true);
  assert.is(await bucket.sizeOf('blobs/x'), 5);
});

test('lost objects, and those of another size, are counted and logged', async () => {
  const place = await server.bucket();
  await using app = await onBucket(place);
  const [kept, lost, short] = [
    await app.upload('kept'),
    await app.upload('lost'),
    await app.upload('short'),
  ];
  using bucket = openBucket(place);
  await bucket.remove(place.prefix + lost);
  await bucket.put(place.prefix + short, Buffer.from('x'));
  const rows = [
    { id: kept, size: 4 },
    { id: lost, size: 4 },
    { id: short, size: 5 },
  ] as never[];
  const store = {
    listBlobs: async ({ after }: { after: string }) => (after === '' ? rows : []),
    getBlob: async (id: string) => rows.find((one: { id: string }) => one.id === id),
  };
  const errors: string[] = [];
  const error = (...said: unknown[]) => void errors.push(JSON.stringify(said));
  const options = { store, bucket, log: Object.assign(log, { error }), metrics: NO_METRICS };
  assert.is(await countLost(options, new AbortController().signal), 2);
  assert.ok(errors.some((line) => line.includes(lost)));
  assert.ok(errors.some((line) => line.includes(short)));
});

test('a backup names the bucket, and a restored directory needs it', async () => {
  const place = await server.bucket();
  await using dir = tempDirectory();
  const target = join(dir.path, 'restored');
  const blobId = await backedUp(place, target);
  const findings = async (env: Record<string, string>) => {
    const found: Finding[] = [];
    for await (const one of checkData({ TABERN_DATA: target, ...env })) found.push(one);
    return found.find(({ check }) => check === 'bucket');
  };
  const settings = server.settings(place);
  assert.is((await findings(settings))?.level, 'ok');
  assert.match(String((await findings({}))?.says), /the files are in s3:/);
  const wrong = { ...settings, TABERN_BLOBS_SECRET_ACCESS_KEY: 'wrong' };
  assert.match(String((await findings(wrong))?.says), /^TABERN_BLOBS_SECRET_ACCESS_KEY /);
  using bucket = openBucket(place);
  await bucket.remove(place.prefix + blobId);
  assert.match(String((await findings(settings))?.says), /^1 are not in s3:/);
  for (const env of [{}, server.settings({ ...place, prefix: 'other/' })]) {
    const started = startCore(configOn(target, env), log).then(
      () => '',
      (error: unknown) => String(error),
    );
    assert.match(await started, /TABERN_BLOBS .* are in s3:/);
  }
});

test('a directory with files of its own is not started on a bucket', async () => {
  const place = await server.bucket();
  await using app = await boot();
  await app.upload('a file');
  await app.core.close();
  const started = startCore(configOn(app.dir, server.settings(place)), log).then(
    () => '',
    (error: unknown) => String(error),
  );
  assert.match(await started, /has files: move them there by `tabern move --s3`/);
});

test('a refused extension is verified from a copy; no object and no copy is left', async () => {
  const place = await server.bucket();
  await using app = await onBucket(place);
  const zip = blobParts({ kind: 'EXTENSION' }, 'no zip');
  const { blobId } = await app.clients.blobs.writeBlob(zip, app.asProject);
  using bucket = openBucket(place);
  assert.is(await bucket.sizeOf(place.prefix + blobId), 6);
  const made = app.clients.extensions.createExtension({ fileName: 'x.zip', blobId }, app.asProject);
  assert.is((await faultOf(made)).reason, 'INVALID_FIELD');
  const keys = (await bucket.list('')).items.map(({ key }) => key);
  assert.equal(keys, [`${place.prefix}tabern-owner`]);
  assert.equal(readdirSync(join(app.dir, 'spool')), []);
});

test('stops', async () => {
  await server[Symbol.asyncDispose]();
});

test.run();

/** A backup of a core on the bucket with one blob, restored; returns the blob. */
async function backedUp(place: S3Place, target: string): Promise<string> {
  await using app = await onBucket(place);
  const blobId = await app.upload('in the bucket');
  const parts = app.clients.operators.createBackup({ withMasterKey: true }, app.asOperator);
  const chunks: Buffer[] = [];
  for await (const { part } of parts) {
    if (part?.$case === 'chunk') chunks.push(part.value);
    else assert.is(part?.value.bucket, nameOf(place));
  }
  async function* bytes() {
    yield* chunks;
  }
  const { manifest } = await restoreBackup({ bytes: bytes(), dataDir: target });
  assert.is(manifest.blobs, 0);
  return blobId;
}

/** The same list, of uploads that began an hour before. */
function aged(list: Bucket['listUploads']): Bucket['listUploads'] {
  return async (after) => {
    const { items, ...page } = await list(after);
    const older = items.map((one) => ({ ...one, ageMs: one.ageMs + 3_605_000 }));
    return { ...page, items: older };
  };
}
